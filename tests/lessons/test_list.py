"""The cards as a set: each is on the list, with its level, its kind and its minutes."""

import re

from harness.render.cards import card as cards
from tests.render.conftest import REPO

LIST = """
01 The two phases of one request | L1 | Concept | 6
02 Why 255 tokens per second is a slogan | L1 | Concept | 6
03 Cached tokens at zero with a stable template | L2 | Debug | 8
04 Choose tensor, pipeline or data parallelism | L2 | Design | 10
05 How many users fit in the KV pool | L2 | Estimate | 10
06 How speculative decoding keeps the output the same | L2 | Concept | 8
07 One token budget instead of two phases | L2 | Concept | 8
08 Read the GPU clock before the throughput | L2 | Debug | 8
09 Read three scheduler log lines | L2 | Code reading | 8
10 Sleep, wake and weight updates for an RL loop | L2 | Concept | 8
11 Temperature zero gave two different answers | L2 | Concept | 8
12 The knee that the prefix cache hid | L2 | Debug | 8
13 Two clients, two numbers, one server | L2 | Concept | 8
14 What an FP8 KV cache buys and costs | L2 | Trade-off | 10
15 What many LoRA adapters cost one server | L2 | Design | 8
16 Why one ID at the top of a prompt kills the cache | L2 | Debug | 8
17 Why the KV cache is a pool of 16-token blocks | L2 | Concept | 8
18 Why the shared part of the prompt goes first | L2 | Concept | 8
19 A larger token budget at low load | L3 | Trade-off | 10
20 Acceptance by draft position, tokens per pass | L3 | Estimate | 8
21 An admission cap decides who waits | L3 | Trade-off | 10
22 Pick a concurrency cap when throughput keeps rising | L3 | Trade-off | 12
23 Pick the EAGLE3 draft depth for your concurrency | L3 | Trade-off | 10
24 Should the prefill chunk be smaller | L3 | Trade-off | 10
25 Speculation won the benchmark and lost in production | L3 | Debug | 10
26 Two data-parallel copies, less output than one card | L3 | Debug | 10
27 What determinism costs a live server | L3 | Trade-off | 10
28 When an FP8 checkpoint pays | L3 | Trade-off | 10
29 When prefill-decode disaggregation pays | L3 | Design | 12
30 A split-server benchmark that counted empty answers | L4 | Code reading | 10
31 Design a chat service on a fleet of L4 cards | L4 | Design | 15
32 Same throughput, two choices at a full pool | L4 | Trade-off | 12
"""


def test_every_card_is_on_the_list_as_it_stands() -> None:
    wanted = {}
    for line in LIST.strip().splitlines():
        title, level, kind, minutes = line[3:].split(" | ")
        wanted[line[:2]] = (title, level, kind, int(minutes))
    assert len(wanted) == 32
    for card in cards.read_all(REPO):
        assert (card.title, card.level, card.kind, card.minutes) == wanted[card.number], card.path
        plain = re.sub(r"[^a-z0-9]+", "-", card.title.lower()).strip("-")
        assert card.slug == plain, card.path
