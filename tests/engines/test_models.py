"""Sizes, hashes and the conversion, on arrays small enough to check by hand."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from harness.engines import environments, models, smollm2
from harness.errors import HarnessError
from harness.models import Builder

SMOLLM2 = {
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "head_dim": 64,
    "hidden_size": 576,
    "dtype": "bfloat16",
}


def test_kv_bytes_per_token() -> None:
    assert models.kv_bytes_per_token(SMOLLM2) == 23_040
    without = {k: v for k, v in SMOLLM2.items() if k not in ("head_dim", "num_key_value_heads")}
    assert models.kv_bytes_per_token(without) == 69_120  # 9 KV heads
    old = {k: v for k, v in SMOLLM2.items() if k != "dtype"} | {"torch_dtype": "float32"}
    assert models.kv_bytes_per_token(old) == 46_080


def test_unpermute_undoes_llama_cpps_order() -> None:
    # Two heads of size 4. The original rows 0 1 2 3 of a head stand in a GGUF as 0 2 1 3.
    stored = np.array([[0], [2], [1], [3], [10], [12], [11], [13]])
    assert smollm2.unpermute(stored, 2).ravel().tolist() == [0, 1, 2, 3, 10, 11, 12, 13]


def test_bf16_rounds_to_nearest_and_ties_to_even() -> None:
    # bf16 keeps 8 bits of a number: next to 1.0 its steps are 1/128.
    values = np.array([1.0, 1 + 1 / 256, 1 + 3 / 256, 1 + 1.1 / 256, -2.0], dtype=np.float32)
    assert [hex(bits) for bits in smollm2.to_bf16(values)] == [
        "0x3f80",
        "0x3f80",  # a tie: down to the even neighbour
        "0x3f82",  # a tie: up to the even neighbour
        "0x3f81",
        "0xc000",
    ]


def test_names_of_tensors() -> None:
    assert smollm2.tensor_name("token_embd.weight") == "model.embed_tokens.weight"
    wanted = "model.layers.7.self_attn.q_proj.weight"
    assert smollm2.tensor_name("blk.7.attn_q.weight") == wanted


def test_the_tokenizer_splits_digits_and_keeps_control_tokens_whole() -> None:
    alphabet = ["<|x|>", "1", "2", "a", "b", "Ġ", "12", "ab", "Ġab"]
    fields = {
        "tokenizer.ggml.tokens": alphabet,
        "tokenizer.ggml.token_type": [3, 1, 1, 1, 1, 1, 1, 1, 1],
        "tokenizer.ggml.merges": ["1 2", "a b", "Ġ ab"],
    }
    tokenizer = smollm2.build_tokenizer(fields)
    assert tokenizer.encode("ab12 ab<|x|>").tokens == ["ab", "1", "2", "Ġab", "<|x|>"]
    assert tokenizer.decode([7, 1, 2, 8, 0], skip_special_tokens=False) == "ab12 ab<|x|>"


def folder_model(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(SMOLLM2))
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def test_a_folder_is_named_by_the_hash_of_its_weights(tmp_path: Path) -> None:
    one = models.ensure_model(
        str(folder_model(tmp_path / "one", {"model.safetensors": b"abc"})), tmp_path
    )
    assert one.weights_sha256 == hashlib.sha256(b"abc").hexdigest()
    assert (one.served_name, one.weight_bytes, one.tokenizer_path) == ("one", 3, None)
    assert one.source == "folder one"
    two = models.ensure_model(
        str(folder_model(tmp_path / "two", {"b.safetensors": b"b", "a.safetensors": b"a"})),
        tmp_path,
    )
    sums = [hashlib.sha256(data).hexdigest() for data in (b"a", b"b")]
    lines = f"{sums[0]}  a.safetensors\n{sums[1]}  b.safetensors\n"
    assert two.weights_sha256 == hashlib.sha256(lines.encode()).hexdigest()


def test_a_hub_id_is_left_to_the_engine(tmp_path: Path) -> None:
    model = models.ensure_model("Qwen/Qwen3-8B", tmp_path)
    assert (model.path, model.served_name, model.config) == ("Qwen/Qwen3-8B", "Qwen3-8B", None)


def test_what_is_no_model_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="model 'smol': no such folder, and no hub id"):
        models.ensure_model("smol", tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(HarnessError, match=r"empty: a model folder needs config\.json"):
        models.ensure_model(str(tmp_path / "empty"), tmp_path)


MAKER = """
import argparse, pathlib
parser = argparse.ArgumentParser()
for name in ("--base", "--out", "--size"):
    parser.add_argument(name)
args = parser.parse_args()
assert pathlib.Path(args.base).name == "smollm2-135m-instruct"
out = pathlib.Path(args.out)
out.mkdir()
(out / "config.json").write_text("{}")
(out / "model.safetensors").write_bytes(b"x" * int(args.size))
"""


def test_a_script_makes_a_model_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ".engines" / "models"
    (folder / models.PACKAGED).mkdir(parents=True)
    script = tmp_path / "tiny.py"
    script.write_text(MAKER)
    monkeypatch.setattr(models, "SCRIPTS", tmp_path)
    for name, size in (("tiny", "3"), ("torn", "x")):
        builder = Builder("a tiny one", "tiny.py", "", ("--size", size))
        monkeypatch.setitem(models.BUILDERS, name, builder)
    made = models.ensure_model("tiny", tmp_path)
    digest = hashlib.sha256(script.read_bytes()).hexdigest()[:12]
    said = f"a tiny one (made by harness/models/tiny.py --size 3, SHA-256 {digest})"
    assert (made.served_name, made.weight_bytes, made.source) == ("tiny", 3, said)
    script.write_text("raise SystemExit('it is not made twice')")
    assert models.ensure_model("tiny", tmp_path) == made
    (folder / "tiny" / models.MADE).unlink()
    with pytest.raises(HarnessError, match="tiny: was not made by the harness"):
        models.ensure_model("tiny", tmp_path)
    with pytest.raises(HarnessError, match=r"model torn: could not be built .*\n.*made twice"):
        models.ensure_model("torn", tmp_path)
    assert not (folder / "torn").exists()


def test_every_registered_model_has_its_script() -> None:
    for name, builder in models.BUILDERS.items():
        assert (models.SCRIPTS / builder.script).is_file(), name
        if builder.environment:
            environments.environment_lock(builder.environment, name)


def test_changed_weights_of_the_packaged_model_are_noticed(tmp_path: Path) -> None:
    folder = tmp_path / ".engines" / "models" / models.PACKAGED
    folder.parent.mkdir(parents=True)
    folder_model(folder, {"model.safetensors": b"not it"})
    with pytest.raises(HarnessError, match="delete the folder"):
        models.ensure_model(models.PACKAGED, tmp_path)
