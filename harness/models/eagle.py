"""An EAGLE-3 head for SmolLM2-135M-Instruct, in the form that vLLM loads.

The head is one decoder layer. It reads the target's hidden states after three of its layers, made
one by `fc`, beside the embedding of the token that the target chose, and proposes the token after
it; further proposals read the head's own state in the place of the target's. It has a vocabulary of
its own, the 4,096 tokens that the target says most often, so that the product with it stays small:
`d2t` tells what to add to one of its ids to get the target's. The embedding is the target's.

It begins as the target's last layer, fed with the last of the three states, and learns the target's
next-token probabilities on the target's own answers (answers.py). As in EAGLE-3
(arXiv 2503.01840, "training-time test") it is unrolled over several proposals, so that it learns
from its own states too. In step j a place looks at the first step's keys up to itself, and at its
own keys of the steps since.

--random leaves it with random weights: the null line, a head that is never right.

One command: `PYTHON harness/models/eagle.py --base MODEL --out FOLDER`. training.jsonl has a line
for every ten steps (took_ns: processor time) and, at the end, how often each proposal is the
target's likeliest token on answers that were not learned. The last line printed is one JSON object.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from draft import Answers, answers_folder, write  # type: ignore[import-not-found]
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

SEED = 20260603
HEADS, KV_HEADS, HEAD = 9, 3, 64
WIDTH, INNER, VOCABULARY = 576, 1536, 49152
DRAFT_VOCABULARY = 4096
PROPOSALS = 3  # steps of the unrolling
EPS, ROPE_THETA = 1e-5, 100_000.0
BATCH, STEPS, RATE = 8, 400, 5e-4
WARM_STEPS = 30


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x.float(), (WIDTH,), self.weight, EPS)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q_proj = nn.Linear(2 * WIDTH, HEADS * HEAD, bias=False)
        self.k_proj = nn.Linear(2 * WIDTH, KV_HEADS * HEAD, bias=False)
        self.v_proj = nn.Linear(2 * WIDTH, KV_HEADS * HEAD, bias=False)
        self.o_proj = nn.Linear(HEADS * HEAD, WIDTH, bias=False)

    def forward(self, x: Tensor, step: int, past: list[tuple[Tensor, Tensor]]) -> Tensor:
        """x [rows, places, 2 width]; past: keys and values of the steps before, this one's added.

        Place i of step j stands at position i + j of the text.
        """
        rows, places, _ = x.shape
        turn = rotation(torch.arange(places) + step)
        q = turned(self.q_proj(x).view(rows, places, HEADS, HEAD).transpose(1, 2), turn)
        k = turned(self.k_proj(x).view(rows, places, KV_HEADS, HEAD).transpose(1, 2), turn)
        v = self.v_proj(x).view(rows, places, KV_HEADS, HEAD).transpose(1, 2).float()
        group = HEADS // KV_HEADS
        past.append((k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)))
        first_k, first_v = past[0]
        later = torch.ones(places, places, dtype=torch.bool).triu(1)
        scores = (q @ first_k.transpose(2, 3)).masked_fill(later, -math.inf)
        own = [(q * keys).sum(-1, keepdim=True) for keys, _ in past[1:]]
        weight = (torch.cat([scores, *own], -1) / math.sqrt(HEAD)).softmax(-1)
        seen = weight[..., :places] @ first_v
        for number, (_, values) in enumerate(past[1:]):
            seen = seen + weight[..., places + number, None] * values
        return self.o_proj(seen.transpose(1, 2).reshape(rows, places, HEADS * HEAD))


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(WIDTH, INNER, bias=False)
        self.up_proj = nn.Linear(WIDTH, INNER, bias=False)
        self.down_proj = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.input_layernorm, self.hidden_norm = Norm(), Norm()
        self.post_attention_layernorm = Norm()
        self.self_attn, self.mlp = Attention(), Mlp()

    def forward(self, embedded: Tensor, state: Tensor, step: int, past: list) -> Tensor:
        both = torch.cat([self.input_layernorm(embedded), self.hidden_norm(state)], -1)
        state = state + self.self_attn(both, step, past)
        return state + self.mlp(self.post_attention_layernorm(state))


class Head(nn.Module):
    """Names of its parts are those that vLLM reads. embedding: the target's, not trained."""

    def __init__(self, embedding: Tensor) -> None:
        super().__init__()
        self.fc = nn.Linear(3 * WIDTH, WIDTH, bias=False)
        self.midlayer, self.norm = Layer(), Norm()
        self.lm_head = nn.Linear(WIDTH, DRAFT_VOCABULARY, bias=False)
        self.embedding = embedding

    def forward(self, tokens: Tensor, hidden: Tensor) -> Iterator[Tensor]:
        """The normed state of each proposal [rows, places, width]: place i of proposal j (from 0)
        has read token i + 1 + j, and proposes the one after it."""
        state = self.fc(hidden).float()
        past: list[tuple[Tensor, Tensor]] = []
        for step in range(PROPOSALS):
            tokens = functional.pad(tokens[:, 1:], (0, 1))
            state = self.midlayer(functional.embedding(tokens, self.embedding), state, step, past)
            yield self.norm(state)


def rotation(positions: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines [places, head], the two halves of a head turned together."""
    speeds = ROPE_THETA ** (-torch.arange(0, HEAD, 2) / HEAD)
    angles = (positions[:, None] * speeds).repeat(1, 2)
    return angles.cos(), angles.sin()


def turned(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    x = x.float()
    first, second = x.chunk(2, -1)
    return x * turn[0] + torch.cat([-second, first], -1) * turn[1]


def spoken(answers: Answers) -> Tensor:
    """The target's tokens that the head can say, in order: those that were its likeliest choice
    most often, and from the lowest id on where it chose fewer than there is room for."""
    counts = torch.bincount(answers.data["ids"][:, 0].long(), minlength=VOCABULARY).double()
    return (counts - torch.arange(VOCABULARY) / VOCABULARY).topk(DRAFT_VOCABULARY).indices.sort()[0]


def begin(head: Head, target: dict[str, Tensor], said: Tensor) -> None:
    """The target's last layer on the last of the three states; what reads the embedding is small
    noise."""
    last = {
        name.removeprefix("model.layers.29."): value.float()
        for name, value in target.items()
        if name.startswith("model.layers.29.")
    }
    layer = head.midlayer
    for part in ("q_proj", "k_proj", "v_proj"):
        weight = getattr(layer.self_attn, part).weight
        weight.data.normal_(std=0.01)
        weight.data[:, WIDTH:] = last[f"self_attn.{part}.weight"]
    layer.self_attn.o_proj.weight.data = last["self_attn.o_proj.weight"]
    for part in ("gate_proj", "up_proj", "down_proj"):
        getattr(layer.mlp, part).weight.data = last[f"mlp.{part}.weight"]
    layer.hidden_norm.weight.data = last["input_layernorm.weight"]
    layer.post_attention_layernorm.weight.data = last["post_attention_layernorm.weight"]
    head.norm.weight.data = target["model.norm.weight"].float()
    head.lm_head.weight.data = head.embedding[said].clone()
    head.fc.weight.data.normal_(std=0.001)
    head.fc.weight.data[:, 2 * WIDTH :] += torch.eye(WIDTH)


class Lessons:
    """Batches with the target's states; at: the head's id of each of the target's, -1 for none."""

    def __init__(self, answers: Answers, said: Tensor) -> None:
        self.answers = answers
        self.at = torch.full((VOCABULARY,), -1)
        self.at[said] = torch.arange(len(said))

    def losses(self, head: Head, rows: Tensor) -> Iterator[tuple[Tensor, int, int]]:
        """Of each proposal: cross-entropy against the target, nats a place; how many places have
        the target's likeliest token; and how many places there are."""
        batch = self.answers.batch(rows)
        rows_wide, places = batch.tokens.shape
        hidden = torch.zeros(rows_wide, places, 3 * WIDTH, dtype=torch.bfloat16)
        for place, row in enumerate(rows.tolist()):
            start, end = self.answers.starts[row], self.answers.starts[row + 1]
            hidden[place, : end - start] = self.answers.data["hidden"][start:end]
        order = torch.full(batch.tokens.shape, -1)
        order[batch.learned] = torch.arange(len(batch.ids))
        with torch.autocast("cpu", torch.bfloat16):
            for number, state in enumerate(head(batch.tokens, hidden.float())):
                told = functional.pad(order[:, 1 + number :], (0, 1 + number), value=-1)
                asked = told >= 0
                wanted = told[asked]
                logits = head.lm_head(state[asked]).float()
                ids, odds = self.at[batch.ids[wanted]], batch.odds[wanted]
                odds = odds * (ids >= 0)
                likely = logits.log_softmax(-1).gather(1, ids.clamp(min=0))
                loss = -(odds * likely).sum() / max(len(wanted), 1)
                agreed = int((logits.argmax(-1) == ids[:, 0]).sum())
                yield loss, agreed, len(wanted)


def train(head: Head, lessons: Lessons, steps: int, log: Path) -> None:
    optimizer = torch.optim.AdamW(head.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.01)
    generator = torch.Generator().manual_seed(SEED)
    order, seen, began = torch.empty(0, dtype=torch.long), 0, time.process_time_ns()
    for step in range(1, steps + 1):
        if len(order) < BATCH:
            mixed = torch.randperm(len(lessons.answers.rows), generator=generator)
            order = torch.cat([order, lessons.answers.rows[mixed]])
        share = min(step / WARM_STEPS, 0.5 + 0.5 * math.cos(math.pi * step / steps))
        for group in optimizer.param_groups:
            group["lr"] = RATE * share
        optimizer.zero_grad(set_to_none=True)
        parts = list(lessons.losses(head, order[:BATCH]))
        order = order[BATCH:]
        loss = sum(part[0] for part in parts) / PROPOSALS
        loss.backward()
        nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimizer.step()
        seen += parts[0][2]
        if step % 10 == 0 or step == steps:
            took_ns, rounded = time.process_time_ns() - began, round(float(loss.detach()), 4)
            write(log, step=step, tokens_seen=seen, loss=rounded, took_ns=took_ns, note="")


@torch.no_grad()
def held_out(head: Head, lessons: Lessons) -> tuple[float, list[float]]:
    """Loss, and of each proposal the share that is the target's likeliest token, on answers that
    were not learned; the tokens before it are the target's own."""
    parts = list(lessons.losses(head, lessons.answers.held))
    return sum(float(part[0]) for part in parts) / PROPOSALS, [part[1] / part[2] for part in parts]


def save(head: Head, said: Tensor, base: Path, out: Path) -> None:
    weights = {name: value.detach().contiguous() for name, value in head.named_parameters()}
    can_say = torch.zeros(VOCABULARY, dtype=torch.bool)
    can_say[said] = True
    weights |= {"d2t": said - torch.arange(len(said)), "t2d": can_say}
    save_file(weights, out / "model.safetensors", {"format": "pt"})
    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    config |= {
        "architectures": ["LlamaForCausalLMEagle3"],
        "num_hidden_layers": 1,
        "draft_vocab_size": len(said),
        "tie_word_embeddings": False,
        "dtype": "float32",
    }
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="folder of the target model")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--random", action="store_true", help="untrained: the null line")
    asked = parser.parse_args()
    began = time.process_time()
    torch.manual_seed(SEED)
    asked.out.mkdir(parents=True, exist_ok=True)
    target = load_file(asked.base / "model.safetensors")
    head = Head(target["model.embed_tokens.weight"].float())
    told: dict[str, Any] = {"weights": sum(value.numel() for value in head.parameters())}
    said = torch.arange(DRAFT_VOCABULARY)
    if not asked.random:
        answers, log = Answers(answers_folder(asked.base)), asked.out / "training.jsonl"
        said = spoken(answers)
        begin(head, target, said)
        lessons = Lessons(answers, said)
        train(head, lessons, asked.steps, log)
        loss, agrees = held_out(head, lessons)
        took_ns = round(1e9 * (time.process_time() - began))
        shares = ", ".join(f"{share:.4f}" for share in agrees)
        note = f"held out: the same likeliest token, by proposal: {shares}"
        write(log, step=asked.steps, tokens_seen=0, loss=round(loss, 4), took_ns=took_ns, note=note)
        told |= {"held_out_loss": loss, "held_out_agrees_frac": agrees}
    save(head, said, asked.base, asked.out)
    print(json.dumps(told | {"took_s": round(time.process_time() - began, 1)}))


if __name__ == "__main__":
    main()
