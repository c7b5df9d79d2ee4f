"""Prompts of exact token counts, from a seed.

A prompt is a sequence of common English words that are one token each (with the space before
them), so n words are n tokens, as ids and as text alike: an engine that takes token ids and one
that takes text get the same work. Word order is random: right for timing a dense model, wrong for
speculation or quality, which need real text.

The first word of each prompt is drawn without repetition within a repeat, so that no prompt can
share a prefix with another that the same engine process has seen: every prompt is cold.
"""

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tokenizers import Tokenizer

from harness.errors import HarnessError

WORDS_PATH = Path(__file__).parent / "words.txt"


@dataclass(frozen=True, slots=True)
class Prompt:
    """ids is None where the tokenizer of the server is unknown: then only the text is sent.

    sha256 is that of the text, and the key by which requests are paired across engines.
    """

    text: str
    ids: tuple[int, ...] | None
    sha256: str


@cache
def words() -> tuple[str, ...]:
    return tuple(WORDS_PATH.read_text(encoding="utf-8").split())


def word_ids(tokenizer_path: Path) -> dict[str, int]:
    """The token id of each word with the space before it.

    Raises HarnessError naming the tokenizer if a word is not exactly one token.
    """
    tokenizer = Tokenizer.from_file(str(tokenizer_path))
    ids: dict[str, int] = {}
    for word in words():
        encoded = tokenizer.encode(f" {word}", add_special_tokens=False).ids
        if len(encoded) != 1:
            raise HarnessError(
                f"{tokenizer_path}: {word!r} of harness/words.txt is {len(encoded)} tokens, not 1; "
                "prompts of exact length need a tokenizer that has these words"
            )
        ids[word] = encoded[0]
    return ids


def prompts(
    seed: int, repeat: int, level: int, n_tokens: int, ids: dict[str, int] | None
) -> Iterator[Prompt]:
    """Endless prompts of n_tokens words each, the same for every engine of a repeat.

    level: number of the load level within the repeat, from 0; it picks the first words, so that
    prompts of two levels differ from their first token on.
    """
    vocabulary = words()
    order = list(vocabulary)
    random.Random(f"{seed}:{repeat}:first").shuffle(order)  # a repeat has a process of its own
    rng = random.Random(f"{seed}:{repeat}:{level}")
    # 50 first words a level: more requests than that share a first token, never a block of them.
    first = (order[(level * 50 + i) % len(order)] for i in range(1 << 62))
    for word in first:
        chosen = [word, *rng.choices(vocabulary, k=n_tokens - 1)]
        text = "".join(f" {w}" for w in chosen)
        token_ids = tuple(ids[w] for w in chosen) if ids is not None else None
        yield Prompt(text, token_ids, hashlib.sha256(text.encode()).hexdigest())
