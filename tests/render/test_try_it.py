import html
import re
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.render import pages


def page(root: Path) -> str:
    pages.build_pages(root)
    return (root / "docs" / "episodes" / "00-warm-up.md").read_text(encoding="utf-8")


def change(root: Path, old: str, new: str, name: str = "model.py") -> None:
    path = root / "episodes" / "00-warm-up" / name
    content = path.read_text(encoding="utf-8")
    assert old in content
    path.write_text(content.replace(old, new), encoding="utf-8")


def test_every_setting_is_computed_the_first_input_varying_slowest(root: Path) -> None:
    shown = page(root)
    ttft, whole = (html.unescape(each) for each in re.findall(r'data-values="([^"]*)"', shown))
    # the slope is 0.2 ms a token on vLLM and 0.3 on SGLang; 64, 512 and 2,048 tokens; 1 and 8
    vllm, sglang = "12.8|12.8|102.4|102.4|409.6|409.6", "19.2|19.2|153.6|153.6|614.4|614.4"
    assert ttft == f"{vllm}|{sglang}"
    assert whole.split("|")[:4] == ["14", "21", "103", "110"]
    assert '<span data-values="' + ttft + '">102.4</span> ms' in shown  # the defaults
    assert 'data-stops="64 tokens|512 tokens|2,048 tokens"' in shown
    assert 'aria-valuetext="512 tokens"' in shown and ">vLLM</option>" in shown


def test_the_errors_that_it_makes_stand_beside_it(root: Path) -> None:
    shown = page(root)
    assert re.search(r"is off by 38\.5 % at most and 18\.7 % in the median of 12 recorded", shown)
    assert re.search(r"by 3\.8 % at most and 2\.8 % in the median of 6 recorded points", shown)
    rests = re.search(r"<li>Its constants and the points: <span[^>]*>([^<]*)</span></li>", shown)
    assert rests is not None and rests[1] == "recorded on cpu"
    assert "Let through: 60 %." in shown and "Whole answer</strong>: computed only" in shown
    assert 'href="#source-cpu-wait_constants"' not in shown  # no number of it stands in the text
    assert 'id="source-cpu-wait_constants"' in shown and 'id="source-cpu-wait_points"' in shown


def test_without_scripts_a_table_varies_one_input(root: Path) -> None:
    fallback = page(root).partition("<noscript>")[2].partition("</noscript>")[0]
    assert "Held: Engine vLLM, Answer 1 tokens." in fallback
    assert re.findall(r"<td>([^<]*)</td>", fallback) == [
        *("64 tokens", "12.8 ms", "14 ms"),
        *("512 tokens", "102.4 ms", "103 ms"),
        *("2,048 tokens", "409.6 ms", "411 ms"),
    ]
    change(root, '"wait")', '"wait", vary="output_tokens")', "episode.md")
    assert "Held: Engine vLLM, Prompt 512 tokens." in page(root)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("within=0.6", "within=0.3", r"episode\.md:\d+: model 'wait' at engine = .* 30\.0%"),
        ("[64, 512, 2048]", "[512, *range(5000)]", "settings make .* give its inputs fewer stops"),
        ("def wait(", "def other(", r"episode\.md:\d+: try_it wait: model\.py has no such model"),
        ("ttft_ms + output_tokens}", '"a|b"}', r"a value of 'whole_ms' holds '\|'"),
        ("How long", "After 3 ms, how long", r"model\.py:\d+: '3 ms' is typed"),
    ],
)
def test_a_fault_stops_the_build(root: Path, old: str, new: str, message: str) -> None:
    change(root, old, new)
    with pytest.raises(HarnessError, match=message):
        pages.build_pages(root)
