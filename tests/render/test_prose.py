from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.render import formula, manifest, prose, queries, registry, source


def rendered(root: Path, text: str) -> str:
    (root / "episodes" / "00-warm-up" / "episode.md").write_text(text, encoding="utf-8")
    chapter = registry.read(root)[0]
    (entry,) = manifest.verify(root)
    sources = {"cpu": source.read(root, entry)}
    return prose.Prose(root, chapter, sources, queries.Cache(root)).render()


def test_a_number_is_read_and_leads_to_its_query(root: Path) -> None:
    page = rendered(root, '{{ n("ttft_one.ms", ".1f", engine="vllm") }} ms')
    assert ">16.8</a> ms" in page.replace("&#46;", ".")
    assert 'href="#source-cpu-ttft_one"' in page and 'id="source-cpu-ttft_one"' in page


def test_a_changed_recording_changes_number_and_sentence(root: Path) -> None:
    import duckdb

    text = (
        '{{ n("ttft_one.ms", ".1f", engine="vllm") }} {% if value("ttft_one.ms", engine="vllm")'
        ' < value("ttft_one.ms", engine="sglang") %}vLLM first{% else %}SGLang first{% endif %}'
    )
    assert "vLLM first" in rendered(root, text)
    path = root / "data" / "00" / "made.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute(
            "UPDATE request SET first_token_ns = 99000000 FROM cell"
            " WHERE cell.cell_id = request.cell_id AND engine = 'vllm'"
        )
    manifest.update(root, path)
    page = rendered(root, text)
    assert ">99.0</a>" in page and "SGLang first" in page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('\n{{ n("ttft_one.ms") }}', r"episode\.md:2: ttft_one\.ms: 3 rows fit it, one is needed"),
        ('{{ n("ttft_one.x") }}', "has no such column"),
        ('{{ n("ttft_one.ms", motor="vllm") }}', "no column 'motor'"),
        ('{{ n("nothing.ms") }}', "queries.sql has no query 'nothing'"),
        ('{{ n("config.layers", tier="gpu") }}', "tier 'gpu' is not recorded"),
        ('{{ figure("nothing") }}', "charts.py has no such function"),
        ('{{ figure("ttft", kind="guessed") }}', "kind 'guessed'"),
        ('{{ figure("ttft", kind="cited") }}', "names its source"),
        ('{{ table("texts", columns={"x": "X"}) }}', "has no column 'x'"),
        ('{{ declared("tier.cpu.x") }}', "has no such key"),
        ('{{ computed("__import__(1)") }}', "cannot read"),
        ('{{ computed("1 / 0") }}', "division by zero"),
        ("{{ unknown }}", "'unknown' is undefined"),
        ("{% if %}", r"episode\.md:1:"),
    ],
)
def test_a_fault_names_the_line_and_the_way_out(root: Path, text: str, message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        rendered(root, text)


def test_formulas(root: Path) -> None:
    assert formula.evaluate("2 * (a + 1) ** 2 / 4 - -b", {"a": 3, "b": 1}) == 9
    page = rendered(root, '{{ computed("2 * layers", layers=value("config.layers")) }}')
    assert ">60</a>" in page and "2 &#42; layers with layers = 30" in page


def test_a_tier_without_a_recording_gets_its_command(root: Path) -> None:
    page = rendered(root, '{% if recorded("gpu") %}x{% endif %}{{ not_recorded("gpu") }}')
    assert "Not recorded yet on the gpu tier" in page and "make record EPISODE=00" in page
