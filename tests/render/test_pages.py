import re
import time
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.render import pages, registry
from tests.render import recordings
from tests.render.conftest import REPO, checkout

TITLES = [
    "Warm-up",
    "Measure what matters",
    "Equal-work runtime baseline",
    "Prefix reuse",
    "Batching, scheduling and mixed traffic",
    "Attention kernels and precision",
    "Speculative decoding and structured outputs",
    "Parallelism within one node",
    "Parallelism across nodes",
    "Prefill/decode disaggregation and cache-aware routing",
    "Slurm and Kubernetes orchestration",
    "Model internals",
    "LoRA and QLoRA with held-out evaluation",
    "SYSTEM 1 and LLMs on labeled decision tasks",
    "Packaging, accelerator preflight and memory containment",
    "Saturation, SLO and cost",
    "Release gates, recovery and capstone synthesis",
]


def test_the_course_has_its_episodes_and_the_nav_has_them_all() -> None:
    chapters = registry.read(REPO)
    assert [chapter.title for chapter in chapters] == TITLES
    assert [chapter.number for chapter in chapters] == [f"{i:02}" for i in range(17)]
    nav = re.findall(r"- episodes/(\d\d-[a-z0-9-]+)\.md", (REPO / "mkdocs.yml").read_text())
    assert nav == [chapter.name for chapter in chapters]


def test_every_page_is_generated_and_a_second_build_changes_nothing(root: Path) -> None:
    stale = root / "docs" / "episodes" / "99-old.md"
    stale.parent.mkdir()
    stale.write_text("old", encoding="utf-8")
    pages.build_pages(root)
    made = sorted(path for folder in pages.GENERATED for path in (root / folder).rglob("*.*"))
    assert len(list((root / "docs" / "episodes").iterdir())) == 18 and not stale.exists()
    times = {path: path.stat().st_mtime_ns for path in made}
    started = time.monotonic()
    pages.build_pages(root)
    assert time.monotonic() - started < 2
    assert {path: path.stat().st_mtime_ns for path in made} == times


def test_the_index_says_what_is_recorded_and_what_is_not(root: Path) -> None:
    pages.build_pages(root)
    index = (root / "docs" / "episodes" / "index.md").read_text(encoding="utf-8")
    assert "2026-11-30, 53 cells VALID, 1 INVALID" in index
    assert index.count("not recorded yet") == 33  # 17 episodes on 2 tiers, one of them recorded
    page = (root / "docs" / "episodes" / "03-prefix-reuse.md").read_text(encoding="utf-8")
    assert page.count("make record EPISODE=03") == 2 and "has not been written yet" in page


def test_an_episode_without_any_recording_shows_no_figure(root: Path) -> None:
    (root / "data" / "manifest.toml").unlink()
    (root / "data" / "00" / "made.duckdb").unlink()
    pages.build_pages(root)
    page = (root / "docs" / "episodes" / "00-warm-up.md").read_text(encoding="utf-8")
    assert not (root / "docs" / "assets" / "picture-light.svg").exists()
    assert "<figure" not in page and "appears here once there is" in page
    home = (root / ".cache" / "site" / "home-picture.html").read_text(encoding="utf-8")
    assert "No episode has been recorded yet" in home


def test_a_figure_opens(root: Path) -> None:
    pages.build_pages(root)
    page = (root / "docs" / "episodes" / "00-warm-up.md").read_text(encoding="utf-8")
    figure = page[page.index('<figure class="tbt-figure" id="00-ttft"') : page.index("</figure>")]
    for shown in (
        "recorded on cpu",
        "data/00/made.duckdb",
        "1 INVALID",
        "client_cpu",
        "cpu: Test CPU",
        "OMP_NUM_THREADS=1 vllm serve --x",
        "mean over repeats of TTFT, ms",
        "make record EPISODE=00",
        'aria-label="Time to first token against prompt length, one line an engine."',
    ):
        assert shown in figure, shown
    assert (root / "docs" / "assets" / "data" / "00-ttft.json").stat().st_size < 15_000


def test_the_readme_gets_its_picture_in_both_schemes(root: Path) -> None:
    pages.build_pages(root)
    light, dark = (
        (root / "docs" / "assets" / f"picture-{scheme}.svg").read_text(encoding="utf-8")
        for scheme in ("light", "dark")
    )
    assert "var(" not in light + dark and light != dark and "Transformers" in light


def test_markup_in_every_recorded_text_stays_text(tmp_path: Path) -> None:
    root = checkout(tmp_path, hostile=True)
    pages.build_pages(root)
    for path in [*(root / "docs").rglob("*.md"), root / ".cache" / "site" / "home-picture.html"]:
        page = path.read_text(encoding="utf-8")
        assert "<script" not in page and "<img" not in page, path
        assert "](javascript" not in page, path
    page = (root / "docs" / "episodes" / "00-warm-up.md").read_text(encoding="utf-8")
    assert page.count("&lt;script&gt;window.pwned") > 10
    for path in (root / "docs" / "assets" / "data").iterdir():
        assert "<script" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("episodes/00-warm-up/episode.md", "took 12 ms"), r"episode\.md:1: '12 ms' is typed"),
        (("episodes/98-unknown/episode.md", ""), "no entry for the folder episodes/98-unknown"),
        (("episodes/00-warm-up/charts.py", "def x():\n    pass\n"), "chart 'x' needs a docstring"),
        (("episodes/00-warm-up/charts.py", "def x(:\n"), r"charts\.py:1: "),
        (("episodes/index.toml", '[[episode]]\nnumber = "00"\n'), r"index\.toml: entry 00"),
    ],
)
def test_a_fault_stops_the_build(root: Path, change: tuple[str, str], message: str) -> None:
    path = root / change[0]
    path.parent.mkdir(exist_ok=True)
    path.write_text(change[1], encoding="utf-8")
    with pytest.raises(HarnessError, match=message):
        pages.build_pages(root)


def test_a_chart_that_fails_is_named(root: Path) -> None:
    path = root / "episodes" / "00-warm-up" / "charts.py"
    path.write_text(recordings.CHARTS.replace("rows.groupby", "rows.grupby"), encoding="utf-8")
    with pytest.raises(HarnessError, match=r"charts\.py: chart 'ttft' fails: AttributeError"):
        pages.build_pages(root)
