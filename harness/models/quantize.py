"""Makes quantized copies of a bf16 model: 8-bit and 4-bit weights, rounded to nearest.

    PY harness/models/quantize.py --base BASE --out FOLDER SCHEME

What: each weight of a projection becomes the nearest of 255 or 16 steps; norms, embeddings and the
output layer stay in bf16. Nothing is calibrated: GPTQ and AWQ are names of file formats here, and
not of the methods that look at data before they round. So the error is that of plain rounding.

SCHEME is one of
- w8a8: int8 weights with a scale a row, activations rounded to int8 a token as the engine runs
  (compressed-tensors, "int-quantized");
- w4a16: 4-bit weights, symmetric, a scale for each 64 inputs (compressed-tensors,
  "pack-quantized");
- gptq: the same numbers in GPTQ's file format;
- awq: 4-bit weights with a zero point beside each scale, in AWQ's file format.

Stands alone: needs torch and safetensors. The same bytes on every machine: rounding is to nearest,
ties to even, in float32. Last line: one JSON object.
Source of the layouts: vLLM 0.32.0, model_executor/layers/quantization/ (auto_gptq.py, auto_awq.py,
compressed_tensors/).
"""

import argparse
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

GROUP = 64  # inputs that share a scale
IN_A_WORD = 8  # 4-bit numbers in an int32
SMALLEST = 2.0**-14  # of float16's normal numbers
# AWQ's kernels want the eight numbers of a word in this order.
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
SIDE_FILES = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")


def int8_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """int8 numbers and a scale for each row: weight is about numbers x scale. [out, in]"""
    scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
    return (weight / scale).round().clamp(-127, 127).to(torch.int8), scale


def int4_groups(weight: Tensor, symmetric: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers 0 to 15, scales and zero points of each row's groups of 64 inputs:
    weight is about (numbers - zero) x scale. [out, in], [out, in / 64] twice."""
    rows, inputs = weight.shape
    groups = weight.view(rows, inputs // GROUP, GROUP)
    if symmetric:
        scale = _scales(groups.abs().amax(2) / 7)
        zero = torch.full_like(scale, 8)
    else:  # the range holds 0, so that 0 stays 0
        low, high = groups.amin(2).clamp(max=0), groups.amax(2).clamp(min=0)
        scale = _scales((high - low) / 15)
        zero = (-low / scale).round().clamp(0, 15)
    numbers = (groups / scale[..., None] + zero[..., None]).round().clamp(0, 15)
    return numbers.view(rows, inputs).to(torch.int32), scale, zero.to(torch.int32)


def pack(numbers: Tensor, dim: int, order: Sequence[int] = range(IN_A_WORD)) -> Tensor:
    """Eight 4-bit numbers along `dim` in one int32, the first of `order` in its lowest bits."""
    parts = numbers.to(torch.int64).unflatten(dim, (-1, IN_A_WORD))
    words = torch.zeros_like(parts.select(dim + 1, 0))
    for place, number in enumerate(order):
        words |= parts.select(dim + 1, number) << 4 * place
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)


def _scales(values: Tensor) -> Tensor:
    """Scales that float16 holds exactly, so that a weight is rounded to what will be read back."""
    return values.to(torch.float16).clamp(min=SMALLEST).float()


def w8a8(weight: Tensor) -> dict[str, Tensor]:
    numbers, scale = int8_rows(weight)
    return {"weight": numbers, "weight_scale": scale}


def w4a16(weight: Tensor) -> dict[str, Tensor]:
    numbers, scale, _ = int4_groups(weight, symmetric=True)
    shape = torch.tensor(list(weight.shape))
    return {
        "weight_packed": pack(numbers, 1),
        "weight_scale": scale.to(torch.float16),
        "weight_shape": shape,
    }


def gptq(weight: Tensor) -> dict[str, Tensor]:
    numbers, scale, zero = int4_groups(weight, symmetric=True)
    return {
        "qweight": pack(numbers.t(), 0),
        "scales": scale.t().to(torch.float16),
        "qzeros": pack((zero - 1).t(), 1),  # the format stores one less
        "g_idx": torch.arange(weight.shape[1], dtype=torch.int32) // GROUP,
    }


def awq(weight: Tensor) -> dict[str, Tensor]:
    numbers, scale, zero = int4_groups(weight, symmetric=False)
    return {
        "qweight": pack(numbers.t(), 1, AWQ_ORDER),
        "scales": scale.t().to(torch.float16),
        "qzeros": pack(zero.t(), 1, AWQ_ORDER),
    }


def _compressed(
    kind: str, weights: dict[str, Any], inputs: dict[str, Any] | None
) -> dict[str, Any]:
    of_weights = {"type": "int", "symmetric": True, "dynamic": False} | weights
    group: dict[str, Any] = {"targets": ["Linear"], "weights": of_weights}
    return {
        "quant_method": "compressed-tensors",
        "format": kind,
        "quantization_status": "compressed",
        "ignore": ["lm_head"],
        "config_groups": {"group_0": group | ({"input_activations": inputs} if inputs else {})},
    }


BY_TOKEN = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True}
BITS4 = {"num_bits": 4, "strategy": "group", "group_size": GROUP}
# What a scheme makes of one weight, and how config.json names it.
SCHEMES: dict[str, tuple[Callable[[Tensor], dict[str, Tensor]], dict[str, Any]]] = {
    "w8a8": (w8a8, _compressed("int-quantized", {"num_bits": 8, "strategy": "channel"}, BY_TOKEN)),
    "w4a16": (w4a16, _compressed("pack-quantized", BITS4, None)),
    "gptq": (
        gptq,
        {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False, "sym": True}
        | {"lm_head": False, "checkpoint_format": "gptq"},
    ),
    "awq": (
        awq,
        {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True}
        | {"version": "gemm"},
    ),
}


def convert(base: Path, out: Path, scheme: str) -> dict[str, Any]:
    """Writes the quantized model into the folder `out`; returns what was done."""
    make, named = SCHEMES[scheme]
    tensors: dict[str, Tensor] = {}
    quantized = 0
    for name, weight in load_file(base / "model.safetensors").items():
        if name.endswith("_proj.weight"):
            parts = make(weight.float())
            tensors |= {
                name.removesuffix("weight") + key: part.contiguous() for key, part in parts.items()
            }
            quantized += weight.numel()
        else:
            tensors[name] = weight
    out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = named
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    for name in SIDE_FILES:
        shutil.copy(base / name, out / name)
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    return {"scheme": scheme, "quantized_weights": quantized, "bytes": size}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--base", type=Path, required=True, help="folder of the bf16 model")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("scheme", choices=sorted(SCHEMES))
    given = parser.parse_args()
    print(json.dumps(convert(given.base, given.out, given.scheme)))


if __name__ == "__main__":
    main()
