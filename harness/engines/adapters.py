"""LoRA adapters of random numbers, for a model in a folder, and the flags that name them.

A flag may say `{models}` for the folder of models, `.engines/models`. What it names there is made
where it is a model that is made here, or an adapter: `{models}/NAME-lora-a` or `-b`, NAME being the
served name of the model.

Random numbers are enough for what an adapter costs and for how it splits the prefix cache, since
neither depends on their values. What the model then says has no meaning.
"""

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from harness.engines.models import PACKAGED, Model, ensure_folder
from harness.errors import HarnessError
from harness.models import BUILDERS

LETTERS = ("a", "b")
RANK = 8
TARGETS = ("q_proj", "v_proj")
WEIGHTS = "adapter_model.safetensors"
PLACEHOLDER = "{models}"
_SPREAD = 0.05  # of the numbers: the weights they are added to are about as large


def with_models(flags: Sequence[str], model: Model, root: Path) -> tuple[str, ...]:
    """Flags, or other words, with `{models}` written out; models and adapters that they name are
    made where they lack.

    Raises HarnessError where a flag names a folder there that is neither there nor an adapter, and
    for an adapter that was made for a model of another shape.
    """
    folder = root / ".engines" / "models"
    for flag in flags:
        for name in re.findall(re.escape(PLACEHOLDER) + r"/([\w.-]+)", flag):
            if name == PACKAGED or name in BUILDERS:
                ensure_folder(name, root)
            else:
                _ensure_adapter(name, model, folder)
    return tuple(flag.replace(PLACEHOLDER, str(folder)) for flag in flags)


def _ensure_adapter(name: str, model: Model, folder: Path) -> None:
    known = [f"{model.served_name}-lora-{letter}" for letter in LETTERS]
    if (folder / name).is_dir():
        if name in known and model.config is not None:
            _require_shapes(folder / name, _shapes(model))
        return
    if name not in known or model.config is None:
        made = f"there are: {', '.join(known)}" if model.config else "it needs a model in a folder"
        said = f"{PLACEHOLDER}/{name}: no model or adapter that the harness makes"
        raise HarnessError(f"flag {said}; {made}")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        write_adapter(Path(scratch) / name, _shapes(model), seed=known.index(name))
        (Path(scratch) / name).rename(folder / name)  # appears when whole


def _shapes(model: Model) -> dict[str, tuple[int, int]]:
    """Shape of each tensor of an adapter, by name. Raises HarnessError for models unlike Llama."""
    config = model.config or {}
    try:
        hidden, heads = config["hidden_size"], config["num_attention_heads"]
        layers = config["num_hidden_layers"]
    except KeyError as lacking:
        raise HarnessError(
            f"{model.served_name}: its config.json has no {lacking}: adapters are made for models "
            "of Llama's shape alone"
        ) from None
    head_size = config.get("head_dim") or hidden // heads
    rows = {"q_proj": heads * head_size}
    rows["v_proj"] = config.get("num_key_value_heads", heads) * head_size
    return {
        f"base_model.model.model.layers.{layer}.self_attn.{target}.lora_{part}.weight": shape
        for layer in range(layers)
        for target in TARGETS
        for part, shape in (("A", (RANK, hidden)), ("B", (rows[target], RANK)))
    }


def _require_shapes(adapter: Path, shapes: dict[str, tuple[int, int]]) -> None:
    """Its name tells the model's name alone, and another model may have had that."""
    found = {name: array.shape for name, array in load_file(adapter / WEIGHTS).items()}
    if found != shapes:
        raise HarnessError(
            f"{adapter}: an adapter for a model of another shape; remove the folder, and it is "
            "made for this one"
        )


def write_adapter(out: Path, shapes: dict[str, tuple[int, int]], seed: int) -> None:
    """The two files that peft would write, into a new folder. The same seed gives the same numbers,
    which are drawn in the order of the shapes."""
    out.mkdir()
    rng = np.random.default_rng(seed)
    tensors = {
        name: rng.normal(0, _SPREAD, shape).astype(np.float32) for name, shape in shapes.items()
    }
    save_file(tensors, out / WEIGHTS, {"format": "pt"})
    described = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": None,
        "r": RANK,
        "lora_alpha": 2 * RANK,
        "lora_dropout": 0.0,
        "target_modules": list(TARGETS),
        "bias": "none",
        "inference_mode": True,
    }
    text = json.dumps(described, indent=2) + "\n"
    (out / "adapter_config.json").write_text(text, encoding="utf-8")
