"""A small draft model for SmolLM2-135M-Instruct, distilled from the target's own answers.

What a draft costs is its weights, read once for each proposed token, and of a small model most are
the vocabulary's: 49,152 rows. So this one is narrow before it is shallow. Its width is 192 instead
of 576 (the embedding's main directions, by the eigenvectors of its second moments), with four
layers: 11 million weights against 135. It has the target's KV heads, so that one pool holds both.

It learns the target's next-token probabilities (the eight likeliest of each step, renormalised) on
answers that the target gave (answers.py): cross-entropy, AdamW, a fixed number of steps. The
weights that it imitates came through 4 bits; what it learns is that model.

--random gives it random weights instead: the null line, a draft that is never right.

One command: `PYTHON harness/models/draft.py --base MODEL --out FOLDER`. training.jsonl has a line
for every ten steps (took_ns: processor time) and, at the end, how often its likeliest token is the
target's on answers that it did not see. The last line printed is one JSON object.
"""

import argparse
import json
import math
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

ANSWERS = "smollm2-own-answers"
SEED = 20260602
WIDTH, LAYERS, HEADS, INNER = 192, 4, 3, 576
BATCH, STEPS, RATE = 16, 480, 2e-3
WARM_STEPS = 40
HELD_OUT = 32  # answers, of all kinds, that it does not learn from
LOGIT_ROWS = 128  # places whose whole vocabulary is in memory at once: above, malloc gives it back


@dataclass(frozen=True, slots=True)
class Batch:
    """tokens [rows, places]; learned: the places whose next token the target chose; ids and odds
    [learned places, 8]: the likeliest next tokens there and their share of each other."""

    tokens: torch.Tensor
    learned: torch.Tensor
    ids: torch.Tensor
    odds: torch.Tensor


class Answers:
    """The target's answers, a row each; held: the rows that are kept from learning."""

    def __init__(self, folder: Path) -> None:
        self.data = load_file(folder / "answers.safetensors")
        self.starts = [0, *self.data["sizes"].cumsum(0).tolist()]
        rows = torch.randperm(len(self.data["sizes"]), generator=torch.Generator().manual_seed(1))
        self.held, self.rows = rows[:HELD_OUT], rows[HELD_OUT:]

    def batch(self, rows: torch.Tensor) -> Batch:
        """Rows padded at the right to the longest."""
        sizes = self.data["sizes"][rows]
        tokens = torch.zeros(len(rows), int(sizes.max()), dtype=torch.long)
        learned = torch.zeros(tokens.shape, dtype=torch.bool)
        ids, odds = [], []
        for place, row in enumerate(rows.tolist()):
            start, end = self.starts[row], self.starts[row + 1]
            first = int(self.data["prompt_tokens"][row]) - 1
            tokens[place, : end - start] = self.data["tokens"][start:end]
            learned[place, first : end - start] = True
            ids.append(self.data["ids"][start + first : end].long())
            odds.append(self.data["odds"][start + first : end].float())
        share = torch.cat(odds)
        return Batch(tokens, learned, torch.cat(ids), share / share.sum(-1, keepdim=True))


def answers_folder(base: Path) -> Path:
    """The folder of the answers beside the base model; made where it is missing."""
    folder = base.parent / ANSWERS
    if not folder.exists():
        beside = folder.with_name(folder.name + ".making")
        shutil.rmtree(beside, ignore_errors=True)
        script = Path(__file__).with_name("answers.py")
        argv = [sys.executable, str(script), "--base", str(base), "--out", str(beside)]
        subprocess.run(argv, check=True)
        beside.rename(folder)
    return folder


def small(base: dict[str, Any]) -> dict[str, Any]:
    """config.json of the draft: the base's, narrower and shallower."""
    return base | {
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "head_dim": 64,
        "dtype": "float32",
    }


def narrowed(embedding: torch.Tensor) -> torch.Tensor:
    """The embedding in its main directions, scaled to the usual size of a new model's (0.02)."""
    moments = embedding.T @ embedding
    directions = torch.linalg.eigh(moments).eigenvectors[:, -WIDTH:]
    narrow = embedding @ directions
    return narrow * (0.02 / narrow.std())


def loss_of(model: LlamaForCausalLM, batch: Batch, backward: bool) -> tuple[float, int]:
    """Cross-entropy against the target, nats a place, and how many places it agrees on.

    The vocabulary's product is done for some places at a time: its gradient is added up in `grown`
    and goes through the layers once.
    """
    with torch.autocast("cpu", torch.bfloat16):
        hidden = model.model(input_ids=batch.tokens).last_hidden_state[batch.learned]
    grown, total, agreed = hidden.detach().requires_grad_(backward), 0.0, 0
    for start in range(0, len(grown), LOGIT_ROWS):
        part = slice(start, start + LOGIT_ROWS)
        with torch.autocast("cpu", torch.bfloat16):
            logits = model.lm_head(grown[part]).float()
        likely = logits.gather(1, batch.ids[part]) - logits.logsumexp(-1, keepdim=True)
        loss = -(batch.odds[part] * likely).sum()
        agreed += int((logits.argmax(-1) == batch.ids[part][:, 0]).sum())
        total += float(loss.detach())
        if backward:
            (loss / len(grown)).backward()
    if backward:
        hidden.backward(grown.grad)
    return total / len(grown), agreed


def train(model: LlamaForCausalLM, answers: Answers, steps: int, log: Path) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.01)
    generator = torch.Generator().manual_seed(SEED)
    order, seen, began = torch.empty(0, dtype=torch.long), 0, time.process_time_ns()
    for step in range(1, steps + 1):
        if len(order) < BATCH:
            mixed = torch.randperm(len(answers.rows), generator=generator)
            order = torch.cat([order, answers.rows[mixed]])
        batch, order = answers.batch(order[:BATCH]), order[BATCH:]
        share = min(step / WARM_STEPS, 0.5 + 0.5 * math.cos(math.pi * step / steps))
        for group in optimizer.param_groups:
            group["lr"] = RATE * share
        optimizer.zero_grad(set_to_none=True)
        loss, _ = loss_of(model, batch, backward=True)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seen += len(batch.ids)
        if step % 10 == 0 or step == steps:
            took_ns = time.process_time_ns() - began
            write(log, step=step, tokens_seen=seen, loss=round(loss, 4), took_ns=took_ns, note="")


def write(log: Path, **line: Any) -> None:
    """One line of training.jsonl, as table training_step has them."""
    with log.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)


@torch.no_grad()
def held_out(model: LlamaForCausalLM, answers: Answers) -> tuple[float, float]:
    """Loss and share of equal likeliest tokens on answers that were not learned."""
    batch = answers.batch(answers.held)
    loss, agreed = loss_of(model, batch, backward=False)
    return loss, agreed / len(batch.ids)


def save(model: LlamaForCausalLM, config: dict[str, Any], base: Path, out: Path) -> None:
    weights = {
        name: value.detach().clone()
        for name, value in model.state_dict().items()
        if name != "lm_head.weight"  # the embedding's own
    }
    save_file(weights, out / "model.safetensors", {"format": "pt"})
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(base / name, out / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="folder of the target model")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--random", action="store_true", help="untrained: the null line")
    asked = parser.parse_args()
    began = time.process_time()
    torch.manual_seed(SEED)
    config = small(json.loads((asked.base / "config.json").read_text(encoding="utf-8")))
    model = LlamaForCausalLM(LlamaConfig(**config)).float()
    asked.out.mkdir(parents=True, exist_ok=True)
    said: dict[str, Any] = {"weights": sum(value.numel() for value in model.parameters())}
    if not asked.random:
        target = load_file(asked.base / "model.safetensors")
        model.model.embed_tokens.weight.data = narrowed(target["model.embed_tokens.weight"].float())
        model.tie_weights()
        answers, log = Answers(answers_folder(asked.base)), asked.out / "training.jsonl"
        train(model, answers, asked.steps, log)
        loss, agrees = held_out(model, answers)
        took_ns = round(1e9 * (time.process_time() - began))
        note = f"held out: the same likeliest token at {agrees:.4f} of the places"
        write(log, step=asked.steps, tokens_seen=0, loss=round(loss, 4), took_ns=took_ns, note=note)
        said |= {"held_out_loss": loss, "held_out_agrees_frac": agrees}
    save(model, config, asked.base, asked.out)
    print(json.dumps(said | {"took_s": round(time.process_time() - began, 1)}))


if __name__ == "__main__":
    main()
