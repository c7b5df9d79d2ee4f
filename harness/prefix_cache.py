"""What a prefix cache should hold: how many tokens of each prompt it saves, one after the other.

Two caches, as vLLM 0.32.0 and SGLang 0.5.23 have them, replayed over a list of prompts of which
each has ended before the next one comes. The last token of a prompt is never taken from the cache,
since its output gives the first new token. The output's own tokens are computed and kept too, all
but the last; what they are is not known before the run, so here they match nothing and only take
room.

Sources: vllm/v1/core/{block_pool,kv_cache_manager,single_type_kv_cache_manager}.py;
sglang/srt/mem_cache/{unified_radix_cache,common}.py and unified_cache/unified_tree_core.py. Left
out: requests at the same time, which take room from each other, and pages of more than one token.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from harness.workload import common_prefix

Token = Hashable


class BlockCache:
    """vLLM's cache: whole blocks, each known by its tokens and all those before it.

    Free blocks stand in a queue; a request takes from its front, and a cached block counts as free
    but keeps its tokens until it is taken. A request gives its blocks back from its last to its
    first, to the end of the queue, so that of what was used longest ago the tail goes first. A last
    block that is not full can never match and goes to the front.

    pool_blocks: those that requests can have (empty() takes off the one that vLLM keeps).
    """

    def __init__(self, block_tokens: int, pool_blocks: int) -> None:
        self.block_tokens, self.pool_blocks = block_tokens, pool_blocks
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(pool_blocks))
        self._content: dict[int, Hashable] = {}
        # Blocks by what they hold, oldest first: two can hold the same, as a prompt of whole blocks
        # has its last block computed again.
        self._holders: dict[Hashable, dict[int, None]] = {}

    def serve(self, prompt: Sequence[Token], key: Hashable = "", output_tokens: int = 1) -> int:
        """Tokens of the prompt that the cache saves; then all of it is in the cache.

        key: the salt and the adapter; prompts of different keys share nothing. Raises ValueError
        for a request that is larger than the pool.
        """
        computed = len(prompt) + output_tokens - 1
        needed = -(-computed // self.block_tokens)
        if needed > self.pool_blocks:
            raise ValueError(f"{computed} tokens do not fit into {self.pool_blocks} blocks")
        contents = list(self._contents(prompt, key))
        taken = self._hits(contents[: (len(prompt) - 1) // self.block_tokens])
        hits = len(taken)
        for block in taken:
            del self._free[block]
        taken += [self._take() for _ in range(needed - hits)]
        full = computed // self.block_tokens
        contents += [object() for _ in range(full - len(contents))]
        for block, content in list(zip(taken, contents, strict=False))[hits:]:
            self._content[block] = content
            self._holders.setdefault(content, {})[block] = None
        for block in reversed(taken):
            self._free[block] = None
        for block in taken[full:]:
            self._free.move_to_end(block, last=False)
        return hits * self.block_tokens

    def _contents(self, prompt: Sequence[Token], key: Hashable) -> Iterator[Hashable]:
        before: Hashable = key
        for end in range(self.block_tokens, len(prompt) + 1, self.block_tokens):
            before = hash((before, *prompt[end - self.block_tokens : end]))
            yield before

    def _hits(self, contents: Sequence[Hashable]) -> list[int]:
        hits: list[int] = []
        for content in contents:
            if content not in self._holders:
                break
            hits.append(next(iter(self._holders[content])))
        return hits

    def _take(self) -> int:
        block, _ = self._free.popitem(last=False)
        if block in self._content:
            content = self._content.pop(block)
            del self._holders[content][block]
            if not self._holders[content]:
                del self._holders[content]
        return block


@dataclass(slots=True, eq=False)
class _Node:
    """A run of tokens in the tree. used: when it was last used, by a clock of our own."""

    tokens: tuple[Token, ...]
    parent: "_Node | None"
    used: int
    children: "dict[Token, _Node]" = field(default_factory=dict)

    def path(self) -> "Iterator[_Node]":
        node: _Node | None = self
        while node is not None:
            yield node
            node = node.parent


class RadixCache:
    """SGLang's cache with pages of one token: a tree of token runs, cut where two prompts part.

    Where room lacks, whole leaves go, the one that was used longest ago first, until there is
    enough; what the running request uses stays. A prompt and its output are runs of their own.
    """

    def __init__(self, pool_tokens: int) -> None:
        self.pool_tokens = pool_tokens
        self._held = 0
        self._roots: dict[Hashable, _Node] = {}
        self._clock = count()

    def serve(self, prompt: Sequence[Token], key: Hashable = "", output_tokens: int = 1) -> int:
        """Tokens of the prompt that the cache saves; then prompt and output are in the cache.

        key: the salt and the adapter; prompts of different keys share nothing. Raises ValueError
        for a request that is larger than the pool.
        """
        computed = len(prompt) + output_tokens - 1
        if computed > self.pool_tokens:
            raise ValueError(f"{computed} tokens do not fit into {self.pool_tokens}")
        root = self._roots.setdefault(key, _Node((), None, 0))
        node, hits = self._match(root, prompt[:-1])
        self._make_room(len(prompt) - hits, node)
        end = self._insert(root, prompt)
        output = tuple(object() for _ in range(output_tokens - 1))
        self._make_room(len(output), end)
        self._insert(root, (*prompt, *output))
        return hits

    def _match(self, root: _Node, tokens: Sequence[Token]) -> tuple[_Node, int]:
        """The end of the longest path with these tokens, cut out where need be, and its length."""
        now = next(self._clock)
        node, done = root, 0
        while done < len(tokens) and tokens[done] in node.children:
            node = node.children[tokens[done]]
            node.used = now
            shared = common_prefix(node.tokens, tokens[done:])
            if shared < len(node.tokens):
                node = _split(node, shared)
            done += shared
        return node, done

    def _insert(self, root: _Node, tokens: Sequence[Token]) -> _Node:
        node, done = self._match(root, tokens)
        if rest := tuple(tokens[done:]):
            node.children[rest[0]] = leaf = _Node(rest, node, next(self._clock))
            self._held += len(rest)
            return leaf
        return node

    def _make_room(self, tokens: int, used_to: _Node) -> None:
        kept = set(used_to.path())
        while self.pool_tokens - self._held < tokens:
            leaves = (leaf for root in self._roots.values() for leaf in _leaves(root))
            leaf = min((leaf for leaf in leaves if leaf not in kept), key=lambda leaf: leaf.used)
            assert leaf.parent is not None
            del leaf.parent.children[leaf.tokens[0]]
            self._held -= len(leaf.tokens)


def empty(pool_tokens: int, block_tokens: int) -> BlockCache | RadixCache:
    """An engine's cache, nothing in it, by the pool that its log names and its block: SGLang's tree
    where a block is one token, else vLLM's blocks, of which it keeps one for itself."""
    if block_tokens == 1:
        return RadixCache(pool_tokens)
    return BlockCache(block_tokens, pool_tokens // block_tokens - 1)


def _split(node: _Node, at: int) -> _Node:
    """Cuts a run in two; the first part is new and given back."""
    assert node.parent is not None
    first = _Node(node.tokens[:at], node.parent, node.used, {node.tokens[at]: node})
    node.parent.children[node.tokens[0]] = first
    node.tokens, node.parent = node.tokens[at:], first
    return first


def _leaves(root: _Node) -> Iterator[_Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children.values()
        if not node.children and node is not root:
            yield node
