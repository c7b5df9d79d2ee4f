"""The untrained draft and head: shapes that vLLM loads beside SmolLM2."""

import json
import subprocess
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from harness.engines import environments, models
from harness.models import SCRIPTS

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]


def made(script: str, folder: Path) -> tuple[dict[str, tuple[int, ...]], dict[str, object]]:
    """Shapes of the weights, and the configuration, of a model that was not trained."""
    base = models.ensure_folder(models.PACKAGED, ROOT)
    python = environments.python_of("transformers", script, ROOT)
    argv = [python, str(SCRIPTS / script), "--base", str(base), "--out", str(folder), "--random"]
    subprocess.run(argv, check=True, capture_output=True)
    shapes = {name: value.shape for name, value in load_file(folder / "model.safetensors").items()}
    return shapes, json.loads((folder / "config.json").read_text())


def test_the_draft_has_the_target_s_vocabulary_and_kv_heads(tmp_path: Path) -> None:
    shapes, config = made("draft.py", tmp_path / "draft")
    assert shapes["model.embed_tokens.weight"] == (49152, 192)
    assert shapes["model.layers.3.self_attn.k_proj.weight"] == (3 * 64, 192)
    assert "lm_head.weight" not in shapes
    assert (config["num_key_value_heads"], config["head_dim"]) == (3, 64)


def test_the_head_reads_three_states_and_says_how_its_ids_are_the_target_s(tmp_path: Path) -> None:
    shapes, config = made("eagle.py", tmp_path / "head")
    assert shapes["fc.weight"] == (576, 3 * 576)
    assert shapes["midlayer.self_attn.q_proj.weight"] == (576, 2 * 576)
    assert shapes["lm_head.weight"] == (4096, 576)
    assert (shapes["d2t"], shapes["t2d"]) == ((4096,), (49152,))
    assert config["architectures"] == ["LlamaForCausalLMEagle3"]
