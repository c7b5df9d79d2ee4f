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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tokenizers import Tokenizer

from harness.errors import HarnessError

WORDS_PATH = Path(__file__).parent / "words.txt"


@dataclass(frozen=True, slots=True)
class Prompt:
    """ids is None where only the text is sent: to a server of unknown tokenizer, or as it is.

    n_tokens: its length before what the server adds. hash: the first 64 bits of the SHA-256 of the
    text, the key by which requests are paired across engines.
    """

    text: str
    ids: tuple[int, ...] | None
    n_tokens: int
    hash: int


@cache
def words() -> tuple[str, ...]:
    return tuple(WORDS_PATH.read_text(encoding="utf-8").split())


@cache
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
        yield _prompt([word, *rng.choices(vocabulary, k=n_tokens - 1)], ids)


def conversation(
    first: Prompt, turns: int, answer_tokens: int, turn_tokens: int, ids: dict[str, int] | None
) -> Iterator[Prompt]:
    """The prompts of one session: each is the one before it, an answer and a new question.

    The answer is words of ours and not what the engine said, so that every engine gets the same
    prompts of the same length, whatever it answers.
    """
    rng, chosen, prompt = random.Random(first.hash), first.text.split(), first
    yield prompt
    for _ in range(turns - 1):
        chosen += rng.choices(words(), k=answer_tokens + turn_tokens)
        yield _prompt(chosen, ids)


def of_blocks(
    seed: int,
    blocks: tuple[int, ...],
    block_tokens: int,
    n_tokens: int,
    unique: int,
    ids: dict[str, int] | None,
) -> Prompt:
    """A prompt of a trace: equal block ids give equal words, so prefixes are shared as recorded.

    The last block is cut to n_tokens; what the blocks do not cover is filled from `unique`.
    """
    chosen: list[str] = []
    for block in blocks:
        chosen += random.Random(f"{seed}:block:{block}").choices(words(), k=block_tokens)
    lacking = max(n_tokens - len(chosen), 0)
    chosen += random.Random(f"{seed}:rest:{unique}").choices(words(), k=lacking)
    return _prompt(chosen[:n_tokens], ids)


def cut(prompt: Prompt, n_tokens: int, ids: dict[str, int] | None) -> Prompt:
    """The first n_tokens of a prompt."""
    return _prompt(prompt.text.split()[:n_tokens], ids)


def share(
    own: Prompt, seed: int, document: int, tokens: int, at: str, ids: dict[str, int] | None
) -> Prompt:
    """The prompt with its first or last tokens (at: start or end) from a text shared by others,
    at most all of them.

    A document is the same words for a seed, whatever the repeat, and tokens are its first ones. Two
    documents differ from their first word on.
    """
    vocabulary, tokens = words(), min(tokens, own.n_tokens)
    rng = random.Random(f"{seed}:document:{document}")
    text = [vocabulary[document % len(vocabulary)], *rng.choices(vocabulary, k=own.n_tokens)]
    rest = own.text.split()[: own.n_tokens - tokens]
    shared = text[:tokens]
    return _prompt(shared + rest if at == "start" else rest + shared, ids)


def as_it_is(text: str, n_tokens: int) -> Prompt:
    """A prompt that is not made here: sent as text."""
    return Prompt(text, None, n_tokens, _hash(text))


def common_prefix(first: Sequence[object], second: Sequence[object]) -> int:
    """Length of the longest prefix that two sequences have in common."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))


def _prompt(chosen: list[str], ids: dict[str, int] | None) -> Prompt:
    text = "".join(f" {word}" for word in chosen)
    token_ids = tuple(ids[word] for word in chosen) if ids is not None else None
    return Prompt(text, token_ids, len(chosen), _hash(text))


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
