"""Comparison sentences and goodput of a page: made from the recording, opened, refused."""

from pathlib import Path

import duckdb
import pytest

from harness.errors import HarnessError
from harness.recording.store import apply_views
from harness.render import manifest, prose, queries, registry, source
from tests.analysis import conftest as pairs
from tests.render import recordings

DECLARED = """
[slo.chat]
cells = { sweep = "pair" }
bounds = { ttft = 20, tpot = 15 }

[slo.power]
cells = { sweep = "pair" }
bounds = { power = 20 }

[compare.ttft]
a = { engine = "vllm", sweep = "pair" }
b = { engine = "sglang", said = "SGLang <b>" }
metric = "ttft"

[compare.tail]
a = { engine = "vllm", sweep = "pair" }
b = { engine = "sglang" }
metric = "ttft"
statistic = "p99"

[compare.torn]
a = "vllm"
"""
CHANGE = "UPDATE request SET first_token_ns = first_token_ns + 900000000 WHERE cell_id <= 105"


@pytest.fixture
def paired(root: Path) -> Path:
    """The small checkout, with ten more cells in its recording: vLLM is fast, SGLang slow."""
    names = {"fast": "vllm", "slow": "sglang"}
    cells = [
        row | {"cell_id": row["cell_id"] + 100, "sweep": "pair"} | dict.fromkeys(
            ("engine", "variant"), names[row["engine"]])
        for row in pairs.cells()
    ]  # fmt: skip
    rows = [
        request
        for row in pairs.cells()
        for request in pairs.requests(row["cell_id"] + 100, row["engine"], row["repeat"])
    ]
    path = root / "data" / "00" / "made.duckdb"
    with duckdb.connect(str(path)) as db:
        price = '[tier.cpu]\nusd_per_hour = 3.6\nprice_unit = "core"\nengine_cores = [0]\n'
        db.execute("UPDATE recording SET experiment_toml = ?", [price])
        db.execute("UPDATE engine_run SET variant = engine, stopped_ns = 20000000000")
        recordings._insert(db, "cell", cells)
        recordings._insert(db, "request", rows)
        apply_views(db)
    manifest.update(root, path)
    folder = root / "episodes" / "00-warm-up"
    (folder / "analysis.toml").write_text(DECLARED, encoding="utf-8")
    return root


def rendered(root: Path, text: str) -> str:
    (root / "episodes" / "00-warm-up" / "episode.md").write_text(text, encoding="utf-8")
    (entry,) = manifest.verify(root)
    sources = {"cpu": source.read(root, entry)}
    return prose.Prose(root, registry.read(root)[0], sources, queries.Cache(root)).render()


def test_the_sentence_is_made_from_the_recording_and_opens(paired: Path) -> None:
    page = rendered(paired, '{{ compare("ttft", in_flight=1) }}').replace("&#46;", ".")
    sentence, _, end = page.partition("## Where the numbers come from")
    assert sentence.startswith("TTFT p50 of vLLM is <a")
    assert (
        'href="#compare-cpu-1"' in sentence and "0.27 times that of SGLang &#60;b&#62;" in sentence
    )
    assert sentence.rstrip().endswith("</a>&#58; better.")
    assert 'id="compare-cpu-1"' in end and "The proof of equal work" in end
    assert "<td>prompts, by hash</td><td>60 (00000186)</td>" in end
    assert "--a engine=vllm,sweep=pair,in_flight=1 --b engine=sglang,in_flight=1" in end


def test_a_changed_recording_changes_the_sentence(paired: Path) -> None:
    text = '{{ compare("ttft") }} {% if compared("ttft").verdict == "better" %}first{% endif %}'
    assert "better." in (page := rendered(paired, text)).replace("&#46;", ".") and "first" in page
    path = paired / "data" / "00" / "made.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute(CHANGE)
    manifest.update(paired, path)
    assert "worse." in (page := rendered(paired, text)).replace("&#46;", ".")
    assert "first" not in page


def test_a_table_has_a_row_a_level_and_links_each(paired: Path) -> None:
    page = rendered(paired, '{{ compare_table("ttft", in_flight=[1], prompt_tokens=[8]) }}')
    assert '<th scope="col">in flight</th><th scope="col">prompt tokens</th>' in page
    assert "TTFT p50, vLLM / SGLang &lt;b&gt;" in page and page.count('href="#compare-cpu-1"') == 1


def test_the_proof_is_a_table_of_its_own(paired: Path) -> None:
    page = rendered(paired, '{{ proof_table("ttft") }}').partition("## Where")[0]
    assert "<td>VALID cells</td><td>5 of 5</td><td>5 of 5</td><td>yes</td>" in page


def test_goodput_and_cost_are_tables_whose_numbers_open(paired: Path) -> None:
    number = '{{ goodput("chat", "met_percent", ".1f", variant="vllm") }}'
    page = rendered(
        paired, f'{number} {{{{ goodput_table("chat") }}}} {{{{ cost_table("chat") }}}}'
    )
    assert '<a class="tbt-n" href="#slo-cpu-chat">83.3</a>' in page.replace("&#46;", ".")
    assert '<th scope="col">TTFT ≤ 20 ms, %</th>' in page and 'id="slo-cpu-chat"' in page
    assert "USD a million output tokens" in page and "recorded on cpu" in page


def test_a_refusal_stops_the_build_unless_it_is_asked_for(paired: Path) -> None:
    with pytest.raises(
        HarnessError, match=r"episode\.md:2: compare tail: TTFT p99 .* refusal=True"
    ):
        rendered(paired, '\n{{ compare("tail") }}')
    page = rendered(paired, '{{ compare("tail", refusal=True) }}')
    assert '">not comparable</a>, because p99 needs 662 values' in page
    table = '{{ compare_table("tail", in_flight=[1], refusal=%s) }}'
    assert "p99 needs 662" in rendered(paired, table % "True")
    with pytest.raises(HarnessError, match="compare tail: "):
        rendered(paired, table % "False")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{{ compare("x") }}', r"analysis\.toml has no \[compare\.x\], only ttft, tail, torn"),
        ('{{ compare("torn") }}', r"\[compare\.torn\] takes statistic"),
        ('{{ compare("ttft", in_flight=3) }}', "no cell fits .* Recorded values of in_flight: 1"),
        ('{{ compare("ttft", x=3) }}', "no cell has a key 'x'"),
        ('{{ goodput_table("power") }}', "metric 'power' is not recorded; known: ttft"),
        ('{{ goodput("chat", "x") }}', "slo chat: no column 'x'"),
        ('{{ goodput("chat", "met") }}', "goodput chat: 2 rows fit"),
        ('{{ compare("ttft", tier="gpu") }}', "tier 'gpu' is not recorded"),
    ],
)  # fmt: skip
def test_a_fault_names_the_place(paired: Path, text: str, message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        rendered(paired, text)


def test_without_a_declaration_it_says_which_file(paired: Path) -> None:
    (paired / "episodes" / "00-warm-up" / "analysis.toml").unlink()
    with pytest.raises(HarnessError, match=r"analysis\.toml: cannot be read"):
        rendered(paired, '{{ compare("ttft") }}')
