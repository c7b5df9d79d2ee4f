"""What an engine can't do is said before a recording is begun, naming file, sweep and engine."""

from pathlib import Path

import pytest
from rich.console import Console

from harness import jobs_run
from harness.errors import HarnessError
from harness.experiment import load
from harness.record import record
from harness.requirements import require_able
from harness.schedule import cells
from harness.session import Request
from tests.test_experiment import DECLARATION, write
from tests.test_record import root_with
from tests.test_record_load import OPEN

ENGINES = ("emulator", "transformers", "external")


def ask(folder: Path, text: str, *variants: str) -> None:
    experiment = load(write(folder, text))
    tier = experiment.tiers["cpu"]
    require_able(experiment, tier, cells(experiment, tier, variants))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('salts = ["", "red"]', {"transformers": "takes no cache salt and no adapter"}),
        ('adapters = ["", "a"]', {"transformers": "takes no cache salt and no adapter"}),
        ('length_by = "min_tokens"', {"transformers": "takes no min_tokens"}),
        ("temperature = 0.5", {"transformers": "its answers are greedy here"}),
        ("reset_cache = true", dict.fromkeys(ENGINES[1:], "has nothing that empties")),
    ],
)
def test_what_an_engine_cannot_do_is_said(tmp_path: Path, keys: str, said: dict[str, str]) -> None:
    sharing = f"in_flight = 1\nshared_tokens = [8]\ncold = false\n{keys}"
    text = DECLARATION.replace('["a", "b", "c"]', '["emulator", "transformers"]')
    for engine in ENGINES:
        if engine not in said:
            ask(tmp_path, text.replace("in_flight = 1", sharing), engine)
            continue
        words = rf"experiment\.toml: sweep 'length': {engine}: {said[engine]}"
        with pytest.raises(HarnessError, match=words):
            ask(tmp_path, text.replace("in_flight = 1", sharing), "emulator", engine)
    limited = f'{sharing}\nengines = ["emulator"]'
    ask(tmp_path, text.replace("in_flight = 1", limited), *ENGINES)


MORE = """
[tier.cpu.variant.b]
engine = "emulator"
{variant}

[[tier.cpu.job]]
name = "copy"
script = "{script}"
environment = "{environment}"
"""


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"script": "no.py"}, r"job 'copy': no script 'no\.py' in harness/jobs"),
        ({"environment": "vlm"}, "job 'copy': no environment 'vlm'; there are: .*vllm-cpu"),
        ({"variant": "env.API_KEY = 'hush-hush'"}, "the env of b in tier.cpu hold a secret"),
        ({"variant": "cores = [4000]"}, "pins to core 4000"),
        ({"sweep": 'texts = "no.jsonl"'}, r"no\.jsonl: cannot be read"),
    ],
)
def test_what_lacks_is_said_before_anything_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, str], said: str
) -> None:
    (tmp_path / "copy.py").touch()
    monkeypatch.setattr(jobs_run, "SCRIPTS", tmp_path)
    full = {"script": "copy.py", "environment": "", "variant": "", "sweep": ""} | values
    text = DECLARATION.replace('["a", "b", "c"]', '["emulator", "b"]').replace("[8, 16]", "8")
    text = text.replace("in_flight = 1", f"in_flight = 1\n{full.pop('sweep')}")
    folder = tmp_path / "episodes" / "77-test"
    folder.mkdir(parents=True)
    write(folder, text + MORE.format(**full))
    with pytest.raises(HarnessError, match=said):
        record(Request(tmp_path, "77", "cpu"), Console(quiet=True))
    assert not (tmp_path / "data").exists()


def test_it_is_said_before_anything_is_begun(tmp_path: Path) -> None:
    root = root_with(tmp_path)
    declaration = root / "episodes" / "77-test" / "experiment.toml"
    reset = declaration.read_text().replace("in_flight = 2", "in_flight = 2\nreset_cache = true")
    declaration.write_text(reset)
    asked = Request(root, "77", "cpu", url="http://127.0.0.1:9")
    with pytest.raises(HarnessError, match="external: has nothing that empties"):
        record(asked, Console(quiet=True))
    assert not (root / "data").exists()


def test_a_share_of_a_capacity_that_is_not_recorded_names_what_lacks(tmp_path: Path) -> None:
    text = DECLARATION.replace('["a", "b", "c"]', '["emulator", "capped"]').replace(
        "in_flight = 1", 'in_flight = 1\nengines = ["emulator"]'
    )
    variant = '[tier.cpu.variant.capped]\nengine = "emulator"\n\n[[tier'
    text = text.replace("[[tier", variant, 1) + OPEN
    ask(tmp_path, text, "emulator", "capped")
    for alone, plain in (("capped", "emulator"), ("external", "external")):
        words = (
            f"sweep 'open': {alone} takes a share of the capacity of {plain} in sweep 'length', "
            f"which has no cell of {plain} here. Record without ENGINE="
        )
        with pytest.raises(HarnessError, match=words):
            ask(tmp_path, text, alone)
