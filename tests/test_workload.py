"""Prompts: exact lengths, the same from the same seed, no shared prefix."""

from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from harness import workload
from harness.errors import HarnessError


def word_tokenizer(path: Path, missing: str = "") -> Path:
    """A byte-level BPE whose vocabulary holds the words whole, as SmolLM2's does."""
    merges: list[tuple[str, str]] = []
    vocab = {chr(code): code for code in range(ord("a"), ord("z") + 1)} | {"Ġ": 0}
    for word in workload.words():
        if word == missing:
            continue
        piece = "Ġ"
        for letter in word:
            if piece + letter not in vocab:
                vocab[piece + letter] = 1000 + len(vocab)
                merges.append((piece, letter))
            piece += letter
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(path))
    return path


def test_ids_and_text_are_the_same_tokens(tmp_path: Path) -> None:
    path = word_tokenizer(tmp_path / "tokenizer.json")
    ids = workload.word_ids(path)
    tokenizer = Tokenizer.from_file(str(path))
    for prompt in islice(workload.prompts(1, 1, 0, 40, ids), 20):
        assert prompt.ids is not None
        assert len(prompt.ids) == 40
        assert tuple(tokenizer.encode(prompt.text).ids) == prompt.ids


def test_a_tokenizer_that_splits_a_word_is_refused(tmp_path: Path) -> None:
    path = word_tokenizer(tmp_path / "tokenizer.json", missing="window")
    with pytest.raises(HarnessError, match=r"'window' of harness/words\.txt is 3 tokens"):
        workload.word_ids(path)


@given(seed=st.integers(0, 2**32), repeat=st.integers(1, 9), n=st.integers(1, 300))
def test_length_is_exact_and_the_seed_decides(seed: int, repeat: int, n: int) -> None:
    first = list(islice(workload.prompts(seed, repeat, 0, n, None), 3))
    again = list(islice(workload.prompts(seed, repeat, 0, n, None), 3))
    assert [len(p.text.split()) for p in first] == [n, n, n]
    assert first == again
    assert len({p.hash for p in first}) == 3


@given(seed=st.integers(0, 2**32), repeat=st.integers(1, 9))
def test_no_two_prompts_of_a_repeat_begin_alike(seed: int, repeat: int) -> None:
    firsts = [
        prompt.text.split()[0]
        for level in range(7)
        for prompt in islice(workload.prompts(seed, repeat, level, 3, None), 12)
    ]
    assert len(set(firsts)) == 7 * 12
