"""Two models of made weights: right in shape and size, and with nothing to say.

What a layout of parallel engines costs depends on how large a model is and on how its parts can be
split, not on the values of its weights. So these are random numbers from a seed: `dense` has heads,
KV heads, inner width and vocabulary that all divide by two, and a head of its own for the
vocabulary; `moe` has, instead of one block after the attention, eight experts of which each token
takes two (Mixtral's form).

Every matrix is normal with a standard deviation of 1 / sqrt(inputs), so that a layer changes what
passes it about as much as a trained one. With less, the answer would be a function of the last
token alone, and a layer that computes the wrong thing would not show in it.

One command: `PYTHON harness/models/made.py --base MODEL --out FOLDER --shape dense`. The tokenizer
is the base model's. The last line printed is one JSON object.
"""

import argparse
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from safetensors import TensorSpec, serialize_file

SEED = 20261207
VOCABULARY, HIDDEN, HEADS, KV_HEADS, HEAD_SIZE = 49_152, 512, 8, 4, 64
SHAPES = {
    "dense": {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": 12,
        "intermediate_size": 1536,
        "attention_bias": False,
        "mlp_bias": False,
    },
    "moe": {
        "architectures": ["MixtralForCausalLM"],
        "model_type": "mixtral",
        "num_hidden_layers": 6,
        "intermediate_size": 768,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
    },
}
COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD_SIZE,
    "hidden_act": "silu",
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-05,
    "rope_theta": 100000.0,
    "rope_parameters": {"rope_type": "default", "rope_theta": 100000.0},
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 2,
    "dtype": "bfloat16",
}
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")


def matrices(shape: dict[str, object]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Name and (outputs, inputs) of every matrix, in the order in which they are drawn."""
    inner = int(str(shape["intermediate_size"]))
    experts = int(str(shape.get("num_local_experts", 0)))
    yield "model.embed_tokens.weight", (VOCABULARY, HIDDEN)
    for layer in range(int(str(shape["num_hidden_layers"]))):
        at = f"model.layers.{layer}"
        for part, rows in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            yield f"{at}.self_attn.{part}_proj.weight", (rows * HEAD_SIZE, HIDDEN)
        yield f"{at}.self_attn.o_proj.weight", (HIDDEN, HEADS * HEAD_SIZE)
        if not experts:
            yield f"{at}.mlp.gate_proj.weight", (inner, HIDDEN)
            yield f"{at}.mlp.up_proj.weight", (inner, HIDDEN)
            yield f"{at}.mlp.down_proj.weight", (HIDDEN, inner)
            continue
        yield f"{at}.block_sparse_moe.gate.weight", (experts, HIDDEN)
        for expert in range(experts):
            of = f"{at}.block_sparse_moe.experts.{expert}"
            yield f"{of}.w1.weight", (inner, HIDDEN)
            yield f"{of}.w3.weight", (inner, HIDDEN)
            yield f"{of}.w2.weight", (HIDDEN, inner)
    yield "lm_head.weight", (VOCABULARY, HIDDEN)


def weights(shape: dict[str, object]) -> dict[str, np.ndarray]:
    """Every tensor, as the bits of bfloat16. An embedding is a lookup and has one input, so its
    spread is 1."""
    random = np.random.default_rng(SEED)
    made = {}
    for name, size in matrices(shape):
        spread = np.float32(1.0 if name == "model.embed_tokens.weight" else size[1] ** -0.5)
        made[name] = to_bf16(random.standard_normal(size, np.float32) * spread)
    norms = ["model.norm.weight"]
    for layer in range(int(str(shape["num_hidden_layers"]))):
        norms += [
            f"model.layers.{layer}.{at}_layernorm.weight" for at in ("input", "post_attention")
        ]
    return made | {name: to_bf16(np.ones(HIDDEN, np.float32)) for name in norms}


def to_bf16(values: np.ndarray) -> np.ndarray:
    """bfloat16 bits of float32 values, rounded to nearest, ties to even. No NaNs."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shape", choices=sorted(SHAPES), required=True)
    args = parser.parse_args()
    shape = COMMON | SHAPES[args.shape]
    args.out.mkdir(parents=True, exist_ok=True)
    made = weights(shape)
    specs = {
        name: TensorSpec(
            dtype="bfloat16",
            shape=list(bits.shape),
            data_ptr=bits.ctypes.data,
            data_len=bits.nbytes,
        )
        for name, bits in made.items()
    }
    serialize_file(specs, str(args.out / "model.safetensors"), {"format": "pt"})
    (args.out / "config.json").write_text(json.dumps(shape, indent=2) + "\n", encoding="utf-8")
    for name in TOKENIZER:
        shutil.copy(args.base / name, args.out / name)
    said = {"shape": args.shape, "weights": sum(bits.size for bits in made.values())}
    print(json.dumps(said))


if __name__ == "__main__":
    main()
