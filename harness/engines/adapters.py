"""LoRA adapters of random numbers, for a model in a folder, and the flags that name them.

A flag may say `{models}` for the folder of models, `.engines/models`. What it names there is made
where it is an adapter: `{models}/NAME-lora-a` or `-b`, NAME being the served name of the model.

Random numbers are enough for what an adapter costs and for how it splits the prefix cache, since
neither depends on their values. What the model then says has no meaning.
"""

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from harness.engines.models import Model
from harness.errors import HarnessError

LETTERS = ("a", "b")
RANK = 8
TARGETS = ("q_proj", "v_proj")
PLACEHOLDER = "{models}"
_SPREAD = 0.05  # of the numbers: the weights they are added to are about as large


def with_models(flags: Sequence[str], model: Model, root: Path) -> tuple[str, ...]:
    """The flags with `{models}` written out; adapters that they name are made where they lack.

    Raises HarnessError where a flag names a folder there that is neither there nor an adapter.
    """
    folder = root / ".engines" / "models"
    for flag in flags:
        for name in re.findall(re.escape(PLACEHOLDER) + r"/([\w.-]+)", flag):
            _ensure(name, model, folder)
    return tuple(flag.replace(PLACEHOLDER, str(folder)) for flag in flags)


def _ensure(name: str, model: Model, folder: Path) -> None:
    if (folder / name).is_dir():
        return
    known = [f"{model.served_name}-lora-{letter}" for letter in LETTERS]
    if name not in known or model.config is None:
        made = f"there are: {', '.join(known)}" if model.config else "it needs a model in a folder"
        raise HarnessError(f"flag {PLACEHOLDER}/{name}: no adapter that the harness makes; {made}")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        write_adapter(Path(scratch) / name, model.config, seed=known.index(name))
        (Path(scratch) / name).rename(folder / name)  # appears when whole


def write_adapter(out: Path, config: dict[str, Any], seed: int) -> None:
    """The two files that peft would write, for a model of Llama's shape, into a new folder.

    config: the model's config.json. The same seed gives the same numbers.
    """
    out.mkdir()
    rng = np.random.default_rng(seed)
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    head_size = config.get("head_dim") or hidden // heads
    rows = {"q_proj": heads * head_size}
    rows["v_proj"] = config.get("num_key_value_heads", heads) * head_size
    tensors: dict[str, np.ndarray] = {}
    for layer in range(config["num_hidden_layers"]):
        for target in TARGETS:
            stem = f"base_model.model.model.layers.{layer}.self_attn.{target}"
            for part, shape in (("A", (RANK, hidden)), ("B", (rows[target], RANK))):
                numbers = rng.normal(0, _SPREAD, shape).astype(np.float32)
                tensors[f"{stem}.lora_{part}.weight"] = numbers
    save_file(tensors, out / "adapter_model.safetensors", {"format": "pt"})
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
