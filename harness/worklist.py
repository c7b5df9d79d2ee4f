"""The requests of one cell, in the order in which they are planned: prompt, length, due time."""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from harness import arrivals, texts
from harness.errors import HarnessError
from harness.experiment import Seeds, Tier
from harness.schedule import Cell
from harness.workload import (
    Prompt,
    as_it_is,
    common_prefix,
    conversation,
    cut,
    of_blocks,
    prompts,
    share,
)


@dataclass(frozen=True, slots=True)
class Work:
    """One request. due_ns: since the measured phase began; None in a closed loop and for a later
    turn, which is due think_ns after the answer before it. shared_prefix_tokens: in common with one
    planned before it in its cell, None where nothing is shared by plan or the server adds tokens,
    which are shared too. text_id, extra, expected: of a text, see texts.py; extra is merged into
    the body."""

    phase: str
    prompt: Prompt
    output_tokens: int
    due_ns: int | None = None
    session: int | None = None
    turn: int | None = None
    think_ns: int = 0
    shared_prefix_tokens: int | None = None
    salt: str = ""
    adapter: str = ""
    text_id: str = ""
    extra: dict[str, Any] | None = None
    expected: str = ""


@dataclass(frozen=True, slots=True)
class Worklist:
    """Gives the requests of a cell, the same ones each time it is asked.

    rate_per_s: of an open loop at a rate. added_tokens: what the server adds to each prompt, which
    gets as many words fewer. words: their token ids, None where only text can be sent. folder:
    where a trace or texts lie.
    """

    cell: Cell
    tier: Tier
    seeds: Seeds
    rate_per_s: float | None
    added_tokens: int
    words: dict[str, int] | None
    folder: Path

    def __iter__(self) -> Iterator[Work]:
        """Warm-up first. Raises HarnessError for a file that can't be read or doesn't fit."""
        sweep = self.cell.level.sweep
        if sweep.texts:
            yield from self._texts()
            return
        made = self._prompts()
        length = self.cell.level.prompt_tokens - self.added_tokens  # a mix can have longer ones
        warmup = [
            Work("warmup", cut(prompt, length, self.words), sweep.output_tokens)
            for prompt in islice(made, sweep.warmup_requests)
        ]
        yield from warmup
        if sweep.load == "trace":
            yield from self._trace()
        elif sweep.turns > 1:
            yield from self._sessions(made)
        elif self.cell.level.shared_tokens is not None:
            yield from self._sharing(made, warmup, self.cell.level.shared_tokens)
        else:
            for due_ns, (prompt, output_tokens) in zip(
                self._due_ns(), self._kinds(made), strict=False
            ):
                yield Work("measured", prompt, output_tokens, due_ns)

    def _prompts(self) -> Iterator[Prompt]:
        level = self.cell.level
        longest = max([level.prompt_tokens, *(prompt for prompt, _, _ in level.sweep.mix)])
        return prompts(
            seed=self.seeds.prompts,
            repeat=self._repeat,
            level=level.number,
            n_tokens=longest - self.added_tokens,
            ids=self.words,
        )

    @property
    def _repeat(self) -> int:
        """Whose prompts: those of the first repeat where all are to send the same."""
        return 1 if self.cell.level.sweep.same_prompts else self.cell.repeat

    def _due_ns(self) -> Iterator[int | None]:
        """One due time a request, or a session; it ends where the cell has all that it needs."""
        sweep, repeat = self.cell.level.sweep, self.cell.repeat
        seed = f"{self.seeds.arrivals}:{repeat}:{self.cell.level.number}"
        needed = -(-self.cell.level.min_requests // sweep.turns)
        rate_per_s = self.rate_per_s or 0.0
        match sweep.load:
            case "closed":
                prepared = -(-sweep.max_requests // sweep.turns) or needed
                yield from (None for _ in range(prepared))
                return
            case "stages":
                yield from arrivals.stages(sweep.stages, sweep.ramp, seed)
                return
            case "constant":
                due = arrivals.constant(rate_per_s)
            case _:
                due = arrivals.gamma(rate_per_s, sweep.burstiness, seed)
        for number, due_ns in enumerate(due, start=1):
            yield due_ns
            if number >= needed and due_ns >= sweep.min_duration_s * 1e9:
                return

    def _kinds(self, made: Iterator[Prompt]) -> Iterator[tuple[Prompt, int]]:
        """Prompts and output lengths of the measured requests: all alike, or a mix."""
        sweep, level = self.cell.level.sweep, self.cell.level
        if not sweep.mix:
            yield from ((prompt, sweep.output_tokens) for prompt in made)
            return
        rng = random.Random(f"{self.seeds.prompts}:{self._repeat}:{level.number}:mix")
        while True:
            block = [kind for kind in sweep.mix for _ in range(kind[2])]
            rng.shuffle(block)
            for prompt_tokens, output_tokens, _ in block:
                n_tokens = prompt_tokens - self.added_tokens
                yield cut(next(made), n_tokens, self.words), output_tokens

    def _sharing(self, made: Iterator[Prompt], warmup: list[Work], tokens: int) -> Iterator[Work]:
        sweep = self.cell.level.sweep
        seen: defaultdict[tuple[str, str], list[tuple[str, ...]]] = defaultdict(list)
        seen["", ""] = [tuple(work.prompt.text.split()) for work in warmup]
        for number, (due_ns, own) in enumerate(zip(self._due_ns(), made, strict=False)):
            salt = sweep.salts[number % len(sweep.salts)]
            adapter = sweep.adapters[number % len(sweep.adapters)]
            document = number % sweep.documents
            prompt = share(own, self.seeds.prompts, document, tokens, sweep.shared_at, self.words)
            text, before = tuple(prompt.text.split()), seen[salt, adapter]
            longest = max((common_prefix(text, other) for other in before), default=0)
            before.append(text)
            yield Work(
                "measured",
                prompt,
                sweep.output_tokens,
                due_ns,
                shared_prefix_tokens=None if self.added_tokens else longest,
                salt=salt,
                adapter=adapter,
            )

    def _texts(self) -> Iterator[Work]:
        """Lines of the cell's kind, in order from the first; the last ones are the warm-up's."""
        sweep, level = self.cell.level.sweep, self.cell.level
        lines = texts.of_sweep(sweep, self.folder)
        own = [text for text in lines if level.kind in (None, text.kind)]
        for text in islice(cycle(reversed(own)), sweep.warmup_requests):
            yield self._of_text("warmup", text, None)
        for due_ns, text in zip(self._due_ns(), cycle(own), strict=False):
            yield self._of_text("measured", text, due_ns)

    def _of_text(self, phase: str, text: texts.Text, due_ns: int | None) -> Work:
        level = self.cell.level
        return Work(
            phase,
            as_it_is(text.prompt, text.prompt_tokens - self.added_tokens),
            text.output_tokens or level.sweep.output_tokens,
            due_ns,
            text_id=text.id,
            extra=text.merged(level.extra) or None,
            expected=text.expected,
        )

    def _sessions(self, made: Iterator[Prompt]) -> Iterator[Work]:
        sweep = self.cell.level.sweep
        for session, (due_ns, first) in enumerate(zip(self._due_ns(), made, strict=False), start=1):
            turns = conversation(
                first, sweep.turns, sweep.output_tokens, sweep.turn_tokens, self.words
            )
            think_ns = round(sweep.think_s * 1e9)
            for turn, prompt in enumerate(turns, start=1):
                yield Work(
                    "measured",
                    prompt,
                    sweep.output_tokens,
                    due_ns if turn == 1 else None,
                    session,
                    turn,
                    think_ns if turn > 1 else 0,
                )

    def _trace(self) -> Iterator[Work]:
        sweep = self.cell.level.sweep
        path = self.folder / sweep.trace
        rows = arrivals.trace(path, sweep.time_scale)
        for number, row in enumerate(islice(rows, sweep.max_requests or None), start=1):
            if row.prompt_tokens + row.output_tokens > self.tier.max_model_tokens:
                raise HarnessError(
                    f"{path}, request {number}: {row.prompt_tokens} + {row.output_tokens} tokens "
                    f"are more than max_model_tokens = {self.tier.max_model_tokens}"
                )
            prompt = of_blocks(
                self.seeds.prompts,
                row.block_ids,
                sweep.trace_block_tokens,
                max(row.prompt_tokens - self.added_tokens, 1),
                number,
                self.words,
            )
            yield Work("measured", prompt, row.output_tokens, row.due_ns)
