"""Hand-computed: which tokens of a prompt each cache saves, and which block or leaf goes first."""

import pytest

from harness.prefix_cache import BlockCache, RadixCache, empty


@pytest.mark.parametrize(
    ("block", "prompt", "cached"),
    [
        (16, 16, 0),  # the last token is computed, so its block is
        (16, 17, 16),
        (16, 40, 32),
        (16, 2000, 1984),
        (128, 128, 0),
        (128, 129, 128),
    ],
)
def test_a_repeated_prompt_saves_the_blocks_before_its_last_token(
    block: int, prompt: int, cached: int
) -> None:
    cache = BlockCache(block, 1000)
    assert [cache.serve(range(prompt)) for _ in range(3)] == [0, cached, cached]


def test_the_tree_saves_all_but_the_last_token() -> None:
    cache = RadixCache(10_000)
    assert [cache.serve(range(2000)) for _ in range(3)] == [0, 1999, 1999]
    assert cache.serve([*range(700), "other"]) == 700
    assert cache.serve(["other", *range(700)]) == 0


@pytest.mark.parametrize(
    ("pool_tokens", "block_tokens", "cached"),
    [
        (20, 4, 8),  # 5 blocks, one of them vLLM's own: two documents of two blocks stay
        (16, 4, 4),  # 3 blocks are left: the second document takes the end of the first
        (16, 1, 8),  # a block of one token is a tree, whose pool is all for the requests
    ],
)
def test_an_engines_cache_follows_from_its_pool_and_its_block(
    pool_tokens: int, block_tokens: int, cached: int
) -> None:
    cache = empty(pool_tokens, block_tokens)
    assert [cache.serve(range(start, start + 8)) for start in (0, 100)] == [0, 0]
    assert cache.serve(range(9)) == cached


@pytest.mark.parametrize("cache", [BlockCache(4, 100), RadixCache(400)])
def test_prompts_of_different_keys_share_nothing(cache: BlockCache | RadixCache) -> None:
    keys = ["", "red", "", "red", ("red", "a")]
    saved = [cache.serve(range(9), key) for key in keys]
    assert saved == [0, 0, 8, 8, 0]


def test_only_full_blocks_from_the_start_match() -> None:
    cache = BlockCache(4, 100)
    cache.serve(range(12))
    assert cache.serve([*range(7), 99, *range(8, 12), 5]) == 4  # the second block differs
    assert cache.serve([*range(12), 5]) == 12  # a full last block is kept for a longer prompt


@pytest.mark.parametrize("cache", [BlockCache(4, 7), RadixCache(32)])
def test_a_working_set_above_the_pool_taken_in_turn_saves_nothing(
    cache: BlockCache | RadixCache,
) -> None:
    three = [[f"{document}", *range(12)] for document in "abc"]  # 3 blocks and one token each
    assert [cache.serve(three[i % 3]) for i in range(9)] == [0] * 9


def test_a_little_more_room_keeps_the_first_blocks() -> None:
    # The third document lacks two blocks, which are the tail of the first: its first block stays,
    # and from then on every document finds its first block.
    cache = BlockCache(4, 8)
    three = [[f"{document}", *range(12)] for document in "abc"]
    assert [cache.serve(three[i % 3]) for i in range(9)] == [0, 0, 0, 4, 4, 4, 4, 4, 4]


def test_one_block_more_is_enough_for_a_part() -> None:
    # 12 tokens are 3 blocks. With 4 the next prompt takes the free block, then the tail of the
    # first (its third and second block): the first block of it stays.
    cache = BlockCache(4, 4)
    one, other = range(12), range(100, 112)
    assert [cache.serve(one), cache.serve(other), cache.serve([*range(8), 7])] == [0, 0, 4]


def test_what_was_used_last_stays() -> None:
    cache = BlockCache(4, 6)
    one, two, three = range(9), range(100, 109), range(200, 209)  # 2 full blocks and one token
    # The block of the odd token is reused at once: one and two hold 4 blocks and 2 are unused. One
    # is used again, so three takes the unused ones and the tail of two.
    assert [cache.serve(one), cache.serve(two), cache.serve(one), cache.serve(three)] == [
        0,
        0,
        8,
        0,
    ]
    assert [cache.serve(one), cache.serve(two)] == [8, 4]


def test_the_last_block_of_an_exact_repeat_is_held_twice() -> None:
    cache = BlockCache(4, 3)
    assert [cache.serve(range(8)), cache.serve(range(8))] == [0, 4]  # 1 + 2 blocks with one content
    assert cache.serve([*range(8), 9]) == 8


def test_output_takes_room() -> None:
    # 8 + 5 - 1 tokens are 3 blocks: the second request finds one free, and takes the output's and
    # the tail of the first prompt. Without an output it takes the tail alone.
    for output_tokens, cached in ((5, 0), (1, 4)):
        cache = BlockCache(4, 4)
        cache.serve(range(8), output_tokens=output_tokens)
        cache.serve(range(100, 112), output_tokens=output_tokens)
        assert cache.serve(range(8)) == cached


def test_the_tree_drops_the_leaf_used_longest_ago() -> None:
    cache = RadixCache(30)
    shared = list(range(10))
    for tail in "ab":
        cache.serve([*shared, *(f"{tail}{i}" for i in range(5))])  # 10 + 5 + 5 = 20 tokens
    cache.serve([*shared, *(f"a{i}" for i in range(5))])  # b is the older one now
    cache.serve([f"c{i}" for i in range(12)])  # 2 too many: b goes as a whole
    assert cache.serve([*shared, *(f"a{i}" for i in range(5))]) == 14
    assert cache.serve([*shared, *(f"b{i}" for i in range(5))]) == 10


def test_the_tree_drops_an_output_before_its_prompt() -> None:
    cache = RadixCache(20)
    cache.serve(range(10), output_tokens=6)  # 10 and 5
    cache.serve(range(100, 108))  # 3 too many
    assert cache.serve([*range(10), 7]) == 10


def test_a_request_above_the_pool_is_an_error() -> None:
    with pytest.raises(ValueError, match="17 tokens do not fit into 4 blocks"):
        BlockCache(4, 4).serve(range(16), output_tokens=2)
    with pytest.raises(ValueError, match="17 tokens do not fit into 16"):
        RadixCache(16).serve(range(17))
