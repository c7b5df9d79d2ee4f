from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.render import prose_numbers

TYPED = [
    "it took 12 ms",
    "it took 12.5ms",
    "3 s later",
    "1.5s later",
    "250 µs",
    "95 % of them",
    "99% of them",
    "400 tok/s",
    "1,234.5 tokens/s",
    "20 requests per second",
    "16 GB of memory",
    "80 GiB",
    "2.5× faster",
    "3x the rate",
    "2 times faster",
    "at 1,980 MHz",
    "700 W",
    "$0.05 an hour",
    "23,040 bytes",
    "3 core-hours",
    "`12 ms`",
    '{{ figure("a", caption="took 12 ms") }}',
]
ALLOWED = [
    "two cores, 17 episodes, 64 tokens, repeat 3",
    '{{ n("ttft.p50_ms", ".1f") }} ms',
    '{{ cited("23,040 bytes", "a source (2026)", "https://x.org/12ms") }}',
    '{{ computed("2 * 30", ",.0f") }} bytes',
    '{{ declared("tier.cpu.min_duration_s") }} s',
    '<span class="tbt-declared">95 %</span>',
    "```\n12 ms\n```",
    "{# 12 ms #}",
    "2 × 30 × 3",
    "an H200, an 8B model, p99, int8, the 1990s, empty 200s, status 200",
    "[12 ms](https://example.org/12ms)".replace("12 ms", "here"),
    "SmolLM2-135M",
]


@pytest.mark.parametrize("text", TYPED)
def test_a_typed_measurement_is_found(text: str) -> None:
    assert prose_numbers.check_text(text, "a.md"), text


@pytest.mark.parametrize("text", ALLOWED)
def test_what_says_where_it_comes_from_passes(text: str) -> None:
    assert prose_numbers.check_text(text, "a.md") == []


def test_the_finding_names_file_and_line() -> None:
    (finding,) = prose_numbers.check_text("# A\n\n```\n1 ms\n```\ntook 7 ms.\n", "a.md")
    assert str(finding) == "a.md:6: '7 ms' is typed, not read from a recording"


def test_text_in_charts_counts_too() -> None:
    source = '"""About 3 ms."""\nx = f"{a:.1f} ms"\ny = "%{y:.2f} ms"\n'
    assert [f.line for f in prose_numbers.check_charts(source, "charts.py")] == [1]


def test_a_checkout_is_searched(tmp_path: Path) -> None:
    for name in ("docs/a.md", "docs/episodes/made.md", "episodes/00-x/episode.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("took 7 ms", encoding="utf-8")
    (tmp_path / "episodes" / "00-x" / "own.py").write_text('"""Took 7 ms."""', encoding="utf-8")
    with pytest.raises(HarnessError) as caught:
        prose_numbers.check(tmp_path)
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "episodes/00-x/episode.md",
        "docs/a.md",
        "episodes/00-x/own.py",
    ]


def test_no_measured_number_is_typed_in_this_repository() -> None:
    prose_numbers.check(Path(__file__).parents[2])
