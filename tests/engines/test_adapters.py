"""Adapters made of random numbers, and the flags that name them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from harness.engines.adapters import with_models
from harness.engines.models import Model
from harness.errors import HarnessError

SHAPE = {
    "hidden_size": 6,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 2,
    "num_hidden_layers": 2,
}


def model(config: dict[str, Any] | None) -> Model:
    return Model(None, "tiny", "", None, None, config, None)


def test_an_adapter_is_made_once_and_the_folder_is_written_out(tmp_path: Path) -> None:
    flags = ("--lora-modules", "a={models}/tiny-lora-a", "b={models}/tiny-lora-b", '{"x": 1}')
    folder = tmp_path / ".engines" / "models"
    expanded = with_models(flags, model(SHAPE), tmp_path)
    a, b = folder / "tiny-lora-a", folder / "tiny-lora-b"
    assert expanded == ("--lora-modules", f"a={a}", f"b={b}", '{"x": 1}')
    assert sorted(path.name for path in folder.iterdir()) == ["tiny-lora-a", "tiny-lora-b"]
    made = load_file(a / "adapter_model.safetensors")
    stem = "base_model.model.model.layers.1.self_attn"
    assert {k: v.shape for k, v in made.items() if k.startswith(stem)} == {
        f"{stem}.q_proj.lora_A.weight": (8, 6),
        f"{stem}.q_proj.lora_B.weight": (6, 8),
        f"{stem}.v_proj.lora_A.weight": (8, 6),
        f"{stem}.v_proj.lora_B.weight": (2, 8),
    }
    described = json.loads((a / "adapter_config.json").read_text())
    assert (described["r"], described["target_modules"]) == (8, ["q_proj", "v_proj"])
    key = f"{stem}.q_proj.lora_A.weight"
    assert not np.array_equal(made[key], load_file(b / "adapter_model.safetensors")[key])
    before = (a / "adapter_model.safetensors").stat().st_mtime_ns
    with_models(flags, model(SHAPE), tmp_path)
    assert (a / "adapter_model.safetensors").stat().st_mtime_ns == before


def test_an_adapter_of_another_models_shape_is_an_error(tmp_path: Path) -> None:
    flags = ("{models}/tiny-lora-a",)
    with_models(flags, model(SHAPE), tmp_path)
    for key, other in (("hidden_size", 8), ("num_hidden_layers", 3), ("num_key_value_heads", 3)):
        with pytest.raises(HarnessError, match=r"tiny-lora-a: .* another shape; remove the folder"):
            with_models(flags, model(SHAPE | {key: other}), tmp_path)
    gpt2 = {"n_embd": 6, "n_head": 3, "n_layer": 2}
    with pytest.raises(HarnessError, match=r"tiny: its config.json has no 'hidden_size'"):
        with_models(("{models}/tiny-lora-b",), model(gpt2), tmp_path)


def test_a_name_that_is_no_adapter_is_an_error(tmp_path: Path) -> None:
    known = r"\{models\}/tiny-lora-c: .* there are: tiny-lora-a, tiny-lora-b"
    with pytest.raises(HarnessError, match=known):
        with_models(("{models}/tiny-lora-c",), model(SHAPE), tmp_path)
    with pytest.raises(HarnessError, match="it needs a model in a folder"):
        with_models(("{models}/tiny-lora-a",), model(None), tmp_path)
    (tmp_path / ".engines" / "models" / "other").mkdir(parents=True)
    assert with_models(("{models}/other",), model(None), tmp_path)[0].endswith("/models/other")
