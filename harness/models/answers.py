"""Answers of a model to made prompts, kept with what a proposer learns from: its own data.

A draft is accepted where it says what the target would say, so both proposers (draft.py, eagle.py)
learn from the target's own answers and from nothing else. For each token that was read: the hidden
states after three layers and the likeliest next tokens with their probabilities. Every second
prompt is answered greedily, the others at temperature 0.8, which shows the model more texts.

The prompts are of the three kinds that Episode 06 measures (copying edits, templated messages,
open prose), about other subjects: the proposers know the domain, not the prompts.

One command: `PYTHON harness/models/answers.py --base MODEL --out FOLDER` with an environment that
has torch and transformers (minutes on one core). The last line is one JSON object.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

SEED = 20260601
LAYERS = (2, 15, 27)  # vLLM's own choice for 30 layers: 2, n / 2 and n - 3
LIKELIEST = 8
BATCH = 64
ANSWER_TOKENS = 96
TEMPERATURE = 0.8
COUNTS = {"prose": 320, "template": 224, "edit": 224}

WHAT = (
    "bridge", "garden", "train", "clock", "ship", "forest", "kitchen", "violin", "mountain",
    "teacher", "fisherman", "island", "letter", "museum", "bicycle", "river", "castle", "painter",
    "village", "window", "desert", "piano", "snowstorm", "map", "baker", "telescope", "horse",
    "market", "tower", "sailor", "carpenter", "orchard", "station", "lamp", "farmer", "lake",
)  # fmt: skip
HOW = (
    "an old", "a small", "a forgotten", "a busy", "a silent", "a strange", "a broken", "a famous",
    "a lonely", "a bright", "a distant", "a crowded",
)  # fmt: skip
WHERE = (
    "by the sea", "in the north", "at night", "in a big city", "in winter", "after the war",
    "on a hill", "in the rain", "in spring", "near the border",
)  # fmt: skip
GOODS = (
    "desk", "kettle", "camera", "jacket", "printer", "sofa", "radio", "backpack", "mirror",
    "carpet", "bottle", "keyboard", "tent", "mattress", "blender", "notebook", "shelf", "heater",
    "helmet", "charger",
)  # fmt: skip
MATTERS = (
    "budget", "website", "contract", "schedule", "workshop", "survey", "audit", "newsletter",
    "office move", "hiring plan", "safety rules", "annual report",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
PROSE = (
    "Write the beginning of a story about {}.",
    "Describe {} to someone who has never seen it.",
    "Write a short letter to a friend about {}.",
    "Write a paragraph about {}.",
)
TEMPLATES = (
    "Write a short e-mail that confirms an order of {number} {goods}s.",
    "Write a short message that moves the meeting about the {matter} to {day}.",
    "Write a polite reply to a customer whose {goods} arrived broken.",
    "Write a short reminder that the {matter} is due on {day}.",
)
EDITS = (
    'Copy the text, but write "{new}" instead of "{old}". Change nothing else.\n\n{text}',
    "Correct the spelling in this text. Change nothing else.\n\n{text}",
    "Repeat this text word for word.\n\n{text}",
)


def chat(question: str) -> str:
    """The question as the model is asked: its chat template without a system message."""
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def prose(rng: random.Random, count: int) -> Iterator[str]:
    for number in range(count):
        about = f"{rng.choice(HOW)} {rng.choice(WHAT)} {rng.choice(WHERE)}"
        yield PROSE[number % len(PROSE)].format(about)


def templates(rng: random.Random, count: int) -> Iterator[str]:
    for number in range(count):
        yield TEMPLATES[number % len(TEMPLATES)].format(
            number=rng.randint(2, 60),
            goods=rng.choice(GOODS),
            matter=rng.choice(MATTERS),
            day=rng.choice(DAYS),
        )


def edits(rng: random.Random, count: int, texts: list[str]) -> Iterator[str]:
    """Edits of texts that the model wrote itself: their first sentences, one word exchanged."""
    for number in range(count):
        words = texts[number % len(texts)].split()[:45]
        old, new = rng.choice(words), rng.choice(WHAT)
        form = EDITS[number % len(EDITS)]
        yield form.format(old=old, new=new, text=" ".join(words))


@torch.inference_mode()
def answer(
    model: Any, tokenizer: Any, questions: list[str], generator: torch.Generator
) -> list[dict[str, Any]]:
    """One batch: prompts padded at the left, one token a step until all have ended."""
    asked = [chat(question) for question in questions]
    batch = tokenizer(asked, return_tensors="pt", padding=True)
    mask, fed = batch.attention_mask, batch.input_ids
    greedy = torch.arange(len(questions)) % 2 == 0
    alive = torch.ones(len(questions), dtype=torch.bool)
    lengths = torch.zeros(len(questions), dtype=torch.long)
    parts: dict[str, list[torch.Tensor]] = {"tokens": [], "hidden": [], "ids": [], "odds": []}
    cache = DynamicCache()
    for step in range(ANSWER_TOKENS):
        places = (mask.cumsum(1) - 1).clamp(min=0)[:, -fed.shape[1] :]
        out = model(
            input_ids=fed,
            attention_mask=mask,
            position_ids=places,
            past_key_values=cache,
            output_hidden_states=True,
            logits_to_keep=1,
        )
        odds, ids = out.logits[:, -1].float().softmax(-1).topk(LIKELIEST)
        wide = fed.shape[1]
        parts["tokens"].append(fed)
        parts["hidden"].append(torch.cat([out.hidden_states[i] for i in LAYERS], -1))
        parts["ids"].append(ids[:, None].expand(-1, wide, -1))  # of a prompt the last place counts
        parts["odds"].append(odds[:, None].expand(-1, wide, -1))
        lengths += alive * (1 if step else 0)
        drawn = torch.multinomial(
            (odds.log() / TEMPERATURE).softmax(-1), 1, generator=generator
        ).squeeze(1)
        fed = ids.gather(1, torch.where(greedy, 0, drawn)[:, None])
        alive &= fed[:, 0] != tokenizer.eos_token_id
        mask = torch.cat([mask, torch.ones(len(questions), 1, dtype=mask.dtype)], 1)
        if not alive.any():
            break
    whole = {name: torch.cat(values, 1) for name, values in parts.items()}
    prompt_wide = batch.input_ids.shape[1]
    found: list[dict[str, Any]] = []
    for row, prompt_tokens in enumerate(batch.attention_mask.sum(1).tolist()):
        kept = slice(prompt_wide - prompt_tokens, prompt_wide + int(lengths[row]))
        found.append({name: value[row, kept] for name, value in whole.items()})
        found[-1]["prompt_tokens"] = prompt_tokens
    return found


def ask(
    model: Any, tokenizer: Any, questions: list[str], generator: torch.Generator, kind: str
) -> list[dict[str, Any]]:
    """All questions of a kind, those of like length together: padding is computed as well."""
    order = sorted(range(len(questions)), key=lambda i: len(questions[i]))
    found: list[dict[str, Any]] = []
    for start in range(0, len(order), BATCH):
        began = time.monotonic()
        found += answer(
            model, tokenizer, [questions[i] for i in order[start : start + BATCH]], generator
        )
        done = min(start + BATCH, len(order))
        print(f"{kind}: {done}/{len(order)}, {time.monotonic() - began:.1f} s", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="folder of the target model")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the prompts to ask")
    asked = parser.parse_args()
    began = time.monotonic()
    torch.manual_seed(SEED)
    rng, generator = random.Random(SEED), torch.Generator().manual_seed(SEED)
    tokenizer = AutoTokenizer.from_pretrained(asked.base, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(asked.base, dtype=torch.bfloat16).eval()
    counts = {kind: max(2, round(asked.scale * count)) for kind, count in COUNTS.items()}
    told = ask(model, tokenizer, list(prose(rng, counts["prose"])), generator, "prose")
    texts = [
        tokenizer.decode(one["tokens"][one["prompt_tokens"] :], skip_special_tokens=True)
        for one in told
    ]
    texts = [text for text in texts if len(text.split()) > 20]
    found = told + ask(
        model, tokenizer, list(templates(rng, counts["template"])), generator, "template"
    )
    found += ask(model, tokenizer, list(edits(rng, counts["edit"], texts)), generator, "edit")
    asked.out.mkdir(parents=True, exist_ok=True)
    sizes = torch.tensor([len(one["tokens"]) for one in found])
    save_file(
        {
            "tokens": torch.cat([one["tokens"] for one in found]).int(),
            "hidden": torch.cat([one["hidden"] for one in found]),
            "ids": torch.cat([one["ids"] for one in found]).int(),
            "odds": torch.cat([one["odds"] for one in found]).half(),
            "sizes": sizes,
            "prompt_tokens": torch.tensor([one["prompt_tokens"] for one in found]),
        },
        asked.out / "answers.safetensors",
    )
    said = {
        "answers": len(found),
        "answer_tokens": int(sizes.sum()) - sum(one["prompt_tokens"] for one in found),
        "prompt_tokens": sum(one["prompt_tokens"] for one in found),
        "took_s": round(time.monotonic() - began, 1),
    }
    (asked.out / "answers.json").write_text(json.dumps(said) + "\n", encoding="utf-8")
    print(json.dumps(said))


if __name__ == "__main__":
    main()
