import re
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.render import pages, queries, registry
from harness.render.prose import Prose
from tests.render.conftest import REPO
from tests.render.recordings import EPISODE

HEADINGS = [
    "The question",
    "The prediction",
    "The set-up",
    "The result",
    "The gap, explained",
    "What this does not show",
    "Try it",
    "Record it yourself",
    "The files",
]


def page(root: Path, content: str) -> str:
    (root / "episodes" / "00-warm-up" / "episode.md").write_text(content, encoding="utf-8")
    pages.build_pages(root)
    return (root / "docs" / "episodes" / "00-warm-up.md").read_text(encoding="utf-8")


def test_the_parts_are_the_same_and_in_the_same_order(root: Path) -> None:
    assert re.findall(r"^## (.*)$", page(root, EPISODE), re.M) == HEADINGS


def test_the_last_parts_come_from_declaration_and_recording(root: Path) -> None:
    last = page(root, EPISODE).partition("## Record it yourself")[2]
    assert "```\nmake record EPISODE=00\n```" in last
    assert "- **cpu**: vLLM, 3 repeats, model m. By the recording it took" in last
    for name in ("experiment.toml", "queries.sql", "charts.py", "model.py"):
        assert f"<code>episodes/00-warm-up/{name}</code>" in last
    assert re.search(r"data/00/made\.duckdb</code>: the recording on cpu: .* MB, SHA-256", last)
    assert 'href="#recording-cpu"' in last and 'id="recording-cpu"' in last
    assert "The declaration that was recorded on cpu" in last


def test_a_recorded_tier_is_told_as_it_was_recorded_and_another_as_it_is_declared(
    root: Path,
) -> None:
    path = root / "episodes" / "00-warm-up" / "experiment.toml"
    changed = '[tier.cpu]\nmodel = "other"\nengines = ["sglang"]\nrepeats = 7\n'
    path.write_text(changed + changed.replace("cpu", "gpu"), encoding="utf-8")
    last = page(root, EPISODE).partition("## Record it yourself")[2]
    assert "- **cpu**: vLLM, 3 repeats, model m. By the recording it took" in last
    assert "- **gpu**: SGLang, 7 repeats, model other. Not recorded yet." in last


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('{% extends "spine.md" %}\n', "", r"episode\.md:1: must begin with \{% extends"),
        ("{% block gap %}", "{% block gaps %}", r"episode\.md:\d+: 'gaps' is no part"),
        ("How long does it take?", "{# later #}", r"episode\.md:1: the part 'question' is empty"),
        ("{% block setup %}", "Lost.\n{% block setup %}", r"episode\.md:\d+: stands in no part"),
        ("### Table", "## Table", r"episode\.md:28: a heading within a part begins with ###"),
        (
            "{% block gap %}",
            "{% block setup %}{% endblock %}{% block gap %}",
            "'setup' defined twice",
        ),
    ],
)
def test_a_page_off_the_spine_stops_the_build(root: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        page(root, EPISODE.replace(old, new))


def test_a_part_that_is_not_there_is_named_recorded_or_not(root: Path) -> None:
    without = re.sub(r"{% block gap %}.*?{% endblock %}", "", EPISODE, flags=re.S)
    with pytest.raises(HarnessError, match=r"episode\.md: the part 'gap' is missing"):
        page(root, without)
    (root / "data" / "manifest.toml").unlink()
    (root / "data" / "00" / "made.duckdb").unlink()
    with pytest.raises(HarnessError, match=r"episode\.md: the part 'gap' is missing"):
        page(root, without)


def test_every_episode_of_this_repository_is_on_the_spine(tmp_path: Path) -> None:
    for chapter in registry.read(REPO):
        prose = Prose(REPO, chapter, {}, queries.Cache(tmp_path))
        if (prose.folder / "episode.md").exists():
            prose.check()
