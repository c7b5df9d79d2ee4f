"""A card's page: the key comes from the recording, and stale text stops the build."""

import html
import json
import re
from pathlib import Path

import duckdb
import pytest

from harness.errors import HarnessError
from harness.render import manifest, pages
from tests.render.cards.conftest import change


def page(root: Path, name: str = "a-card") -> str:
    pages.build_pages(root)
    return (root / "docs" / "lessons" / f"{name}.md").read_text(encoding="utf-8")


def part(shown: str, ident: str) -> str:
    found = re.search(rf'<section class="tbt-question" id="{ident}".*?</section>', shown, re.DOTALL)
    assert found is not None
    return html.unescape(found[0])


def slower(root: Path, factor: int) -> None:
    """Makes every wait of the recording so many times as long."""
    path = root / "data" / "00" / "made.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute(f"UPDATE request SET first_token_ns = {factor} * first_token_ns")
    manifest.update(root, path)


def test_the_key_is_read_from_the_recording(card: Path, root: Path) -> None:
    shown = page(root)
    assert 'data-key="1"' in part(shown, "one") and 'data-key="0 2"' in part(shown, "many")
    # the median over three repeats: 2 * (64 + 20) * 0.1 ms = 16.8 ms, right from 13.44 to 21
    number = part(shown, "wait")
    assert 'data-low="13.44" data-high="21"' in number and "It was 16.8 ms." in number
    points = re.search(r'data-points="(\[\[.*?\]\])"', part(shown, "draw"))
    assert points is not None
    assert [[x, y] for x, y, *_ in json.loads(points[1])] == [
        [64, 16.8], [128, 29.6], [256, 55.2], [512, 106.4], [1024, 208.8],
    ]  # fmt: skip
    lines = re.findall(r"<code>(.*?)</code>", part(shown, "pick"))
    assert lines == ['a = "<b>"', "wait = 3", "sglang * 2"] and 'data-key="1"' in part(
        shown, "pick"
    )


def test_the_order_is_mixed_and_its_key_is_the_place_of_each(card: Path, root: Path) -> None:
    shown = part(page(root), "rank")
    names = re.findall(r'<label for="rank-\d">(\d+)</label>', shown)
    key = re.search(r'data-key="([\d ]+)"', shown)
    assert key is not None and names != ["64", "128", "256"]
    assert [["64", "128", "256"].index(name) + 1 for name in names] == list(
        map(int, key[1].split())
    )


def test_another_recording_is_another_key(card: Path, root: Path) -> None:
    before = part(page(root), "wait")
    change(
        card,
        'ms", engine="vllm", prompt_tokens=64) > 20\'\nwhy',
        'ms", engine="vllm", prompt_tokens=64) > 99\'\nwhy',
    )
    slower(root, 2)
    after = part(page(root), "wait")
    assert 'data-low="26.88"' in after and "It was 33.6 ms." in after
    old, new = (re.search(r'data-hash="(\w+)"', each) for each in (before, after))
    assert old is not None and new is not None and old[1] != new[1]


def test_a_stale_explanation_stops_the_build(card: Path, root: Path) -> None:
    slower(root, 2)
    with pytest.raises(HarnessError, match=r"\[one\]\.option\[1\]\.when: .* is now right"):
        pages.build_pages(root)
    change(card, "claims = ['value", "claims = ['1 > 2', 'value")
    with pytest.raises(HarnessError, match=r"question\[one\]\.claims\[1\]: no longer holds: 1 > 2"):
        pages.build_pages(root)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("The wait was", "The wait was 3 ms, or", r"lessons/07-a-card\.toml:\d+: '3 ms' is typed"),
        ('heading = "Clocks"', 'heading = "Clock"', r"no heading 'Clock'; there is 'Clocks'"),
        ('page = "method.md"', 'page = "x.md"', r"source\[method\]\.page: there is no page 'x"),
        ("waits.ms\", \".1f\"", "nothing.ms\", \".1f\"", r"07-a-card\.toml: intro: .*'nothing'"),
        ("minutes = 11", "minutes = 6", r"minutes: it says 6, reading and answering take about"),
        ('value = \'1000 *', 'value = \'1.1 *', r"question\[wait\]: the slip .* cannot be told"),
        ('find = "wait = 3"', 'find = "a"', r"\[pick\]\.option\[1\]\.find: 'a' stands in 3 lines"),
        ('otherwise = "That line is quite right."\n', "", r"otherwise: is missing, and line 1"),
        ('x = "prompt_tokens"', 'x = "length"', r"question\[draw\]: no number in the column"),
        ('episode = "00"', 'episode = "01"', r"episode: 01 has no recording yet"),
    ],
)  # fmt: skip
def test_a_fault_stops_the_build(card: Path, root: Path, old: str, new: str, message: str) -> None:
    change(card, old, new)
    with pytest.raises(HarnessError, match=message):
        pages.build_pages(root)


def test_an_order_that_the_recording_turns_around_stops_the_build(card: Path, root: Path) -> None:
    change(
        card,
        "prompt_tokens=128)'\nwhy = \"It is twice as",
        "prompt_tokens=1024)'\nwhy = \"It is twice as",
    )
    with pytest.raises(HarnessError, match=r"question\[rank\]: by the recording its options no"):
        pages.build_pages(root)


def test_answers_stay_out_of_search_and_off_the_sheet_of_questions(card: Path, root: Path) -> None:
    shown = page(root)
    for key in re.findall(r'<details class="tbt-(?:key|hints)"[^>]*>', shown):
        assert "data-search-exclude" in key
    questions, answers = page(root, "questions"), page(root, "answers")
    for sheet in (questions, answers):
        assert "search: {exclude: true}" in sheet and "<input" not in sheet and "<form" not in sheet
    assert "Which waits longer?" in questions and "larger factor" not in questions
    assert "It was" not in questions and "It was 16.8 ms." in answers


def test_the_list_has_the_card_with_what_grades_it(card: Path, root: Path) -> None:
    shown = page(root, "index")
    assert "1 of 30 planned cards" in shown
    assert 'data-level="L1" data-kind="Concept" data-minutes="11"' in shown
    data = json.loads((root / "docs" / "assets" / "data" / "lessons.json").read_text())
    assert data == [["a-card", "A card", "L1", "Concept", "Inference Engineering"]]
