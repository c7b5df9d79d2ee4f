"""A whole recording with what is no plain cell: texts, variants of their own, jobs and attempts."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness import jobs_run, rounds
from harness.errors import HarnessError
from harness.experiment import load
from harness.jobs_run import read_rows
from harness.record import record
from harness.recording.store import Recording, connect
from harness.schedule import cells
from harness.session import Request
from tests.recording.conftest import create

DECLARATION = """
[episode]
number = "77"
title = "Test"
question = "Is it whole?"

[seeds]
prompts = 1
arrivals = 2
sampling = 3

[tier.cpu]
model = "emulator"
engines = ["emulator", "two"]
repeats = 2
max_model_tokens = 512
engine_cores = [0]
client_core = 1
request_timeout_s = 10
usd_per_hour = 0.05
price_unit = "core"
probe = ["Say it", "token"]

[tier.cpu.flags]
emulator = ["--ttft-ms", "5", "--gap-ms", "1", "--fault", "short"]

[tier.cpu.variant.two]
engine = "emulator"
model = "emulator"
flags = ["--ttft-ms", "5", "--gap-ms", "1"]
env = { EMULATED = "{models}", OMP_NUM_THREADS = "2" }
cores = [0, 1]

[[tier.cpu.sweep]]
name = "length"
endpoint = "completions"
prompt_tokens = 8
output_tokens = 4
in_flight = 1
warmup_requests = 1
min_requests = 2
engines = ["two"]

[[tier.cpu.sweep]]
name = "texts"
endpoint = "chat"
texts = "t.jsonl"
extra = ["none", "top"]
prompt_tokens = 8
output_tokens = 6
length_by = "eos"
temperature = 0.5
cold = false
in_flight = 1
warmup_requests = 1
min_requests = 2
engines = ["emulator"]
repeats = 1

[[tier.cpu.job]]
name = "copy"
script = "copy.py"
environment = ""
args = ["--folder", "{episode}"]
threads = 2

[[tier.cpu.job]]
name = "fails"
script = "fails.py"
environment = ""
repeats = 1

[[tier.cpu.attempt]]
name = "plain"
asks = "the question"
engine = "emulator"
keep = ["^KV pool"]

[[tier.cpu.attempt]]
name = "whole"
asks = "an answer that is not streamed"
engine = "emulator"
endpoint = "completions"
body = '{"prompt": "a b"}'

[[tier.cpu.attempt]]
name = "fatal"
asks = "a request that it dies of"
engine = "emulator"
flags = ["--die-after", "1"]

[[tier.cpu.attempt]]
name = "late"
asks = "a request that it never answers"
engine = "emulator"
flags = ["--fault", "slow"]
timeout_s = 5

[[tier.cpu.attempt]]
name = "unknown"
asks = "a flag that it does not know"
engine = "emulator"
flags = ["--no-such-flag"]
"""
COPY = """
import argparse, json, os, pathlib
parser = argparse.ArgumentParser()
for name in ("--out", "--repeat", "--folder"):
    parser.add_argument(name)
args = parser.parse_args()
facts = {"threads": os.environ["OMP_NUM_THREADS"], "cores": sorted(os.sched_getaffinity(0)),
         "folder": pathlib.Path(args.folder).name}
rows = [{"table": "job", "versions": {"torch": "0"}, "facts": facts},
        {"table": "kernel_sample", "op": "copy", "size_bytes": 8, "sample": 1,
         "took_ns": 10 * int(args.repeat), "moved_bytes": 16},
        {"table": "token_score", "variant": "v", "text_id": "t", "position": 1, "token_id": 7,
         "logprob": -1, "top1": True}]
pathlib.Path(args.out).write_text("".join(json.dumps(row) + "\\n" for row in rows))
"""
FAILS = "raise SystemExit('it has no such backend')"
TEXTS = [
    {"id": f"t{n}", "prompt": "a b c", "prompt_tokens": 3, "expected": "yes",
     "extras": {"none": {}, "top": {"top_k": n}}}
    for n in range(4)
]  # fmt: skip


def root_with(folder: Path) -> Path:
    episode = folder / "episodes" / "77-test"
    episode.mkdir(parents=True)
    (episode / "experiment.toml").write_text(DECLARATION)
    (episode / "t.jsonl").write_text("".join(json.dumps(text) + "\n" for text in TEXTS))
    scripts = folder / "jobs"
    scripts.mkdir()
    (scripts / "copy.py").write_text(COPY)
    (scripts / "fails.py").write_text(FAILS)
    return folder


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The root and the finished recording."""
    root = root_with(tmp_path_factory.mktemp("rounds"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs_run, "SCRIPTS", root / "jobs")
        summary = record(Request(root, "77", "cpu"), Console(quiet=True))
    assert (summary["cells"], summary["invalid"]) == (4, 0)
    return root, root / summary["recording"]


def ask(recorded: tuple[Path, Path], sql: str) -> list[tuple[Any, ...]]:
    with connect(recorded[1]) as con:
        return con.execute(sql).fetchall()


def test_texts_are_asked_and_may_end_by_themselves(recorded: tuple[Path, Path]) -> None:
    assert ask(
        recorded,
        "SELECT extra, kind, temperature, ends_itself, output_tokens FROM cell"
        " WHERE sweep = 'texts' ORDER BY extra",
    ) == [("none", None, 0.5, True, 6), ("top", None, 0.5, True, 6)]
    assert ask(
        recorded,
        "SELECT c.extra, r.phase, r.text_id, r.extra ->> '$.top_k', r.expected, r.prompt_tokens,"
        " r.output_tokens, r.asked_output_tokens FROM request r JOIN cell c USING (cell_id)"
        " WHERE c.sweep = 'texts' ORDER BY c.extra, r.request_id",
    ) == [
        (name, phase, text, top, "yes", 3, 3, 6)
        for name in ("none", "top")
        for phase, text, top in (
            ("warmup", "t3", "3" if name == "top" else None),
            ("measured", "t0", "0" if name == "top" else None),
            ("measured", "t1", "1" if name == "top" else None),
        )
    ]


def test_a_variant_has_its_own_environment_and_cores(recorded: tuple[Path, Path]) -> None:
    models = recorded[0] / ".engines" / "models"
    assert ask(
        recorded,
        "SELECT variant, cores, env ->> '$.OMP_NUM_THREADS', env ->> '$.EMULATED',"
        " probe_answer IS NULL FROM engine_run WHERE run_id IN (SELECT run_id FROM cell)"
        " ORDER BY run_id",
    ) == [
        ("emulator", [0], None, None, False),
        ("two", [0, 1], "2", str(models), True),
        ("two", [0, 1], "2", str(models), True),
    ]


def test_jobs_are_run_in_their_repeats(recorded: tuple[Path, Path]) -> None:
    about = (
        "SELECT name, repeat, environment, cores, fault IS NULL, versions ->> '$.torch',"
        " facts ->> '$.threads', CAST(facts -> '$.cores' AS INTEGER[]), facts ->> '$.folder'"
        " FROM job ORDER BY job_id"
    )
    assert ask(recorded, about) == [
        ("copy", 1, "", [0], True, "0", "2", [0], "77-test"),
        ("fails", 1, "", [0], False, None, None, None, None),
        ("copy", 2, "", [0], True, "0", "2", [0], "77-test"),
    ]
    ((fault,),) = ask(recorded, "SELECT fault FROM job WHERE name = 'fails'")
    assert fault == "exit code 1; its last lines:\nit has no such backend"
    samples = "SELECT repeat, took_ns, size_bytes, moved_bytes, backend FROM kernel_sample"
    assert ask(recorded, samples + " JOIN job USING (job_id) ORDER BY repeat") == [
        (1, 10, 8, 16.0, None),
        (2, 20, 8, 16.0, None),
    ]
    scores = "SELECT DISTINCT logprob, top1, kl_nats FROM token_score"
    assert ask(recorded, scores) == [(-1.0, True, None)]
    ((argv,),) = ask(recorded, "SELECT argv FROM job WHERE repeat = 2")
    assert argv[2:6] == ["--out", "ROWS", "--repeat", "2"]


def test_attempts_say_what_came_of_them(recorded: tuple[Path, Path]) -> None:
    found = ask(
        recorded,
        "SELECT a.name, outcome, http_status, answer, r.variant = a.name, r.version IS NULL,"
        " r.ready_ns IS NULL FROM attempt a JOIN engine_run r USING (run_id) ORDER BY attempt_id",
    )
    refusal = '{"error":{"message":"the emulator only streams"}}'
    assert found == [
        ("plain", "answered", 200, " token" * 16, True, False, False),
        ("whole", "rejected", 400, refusal, True, False, False),
        ("fatal", "died", None, None, True, False, False),
        ("late", "no_answer", None, None, True, False, False),
        ("unknown", "not_started", None, None, True, False, True),
    ]
    words = dict(ask(recorded, "SELECT name, words FROM attempt"))
    assert words["plain"] == ["KV pool: 100000 tokens"]
    (error,) = words["unknown"]
    assert "unrecognized arguments: --no-such-flag" in error


def test_nothing_is_done_twice(recorded: tuple[Path, Path]) -> None:
    experiment = load(recorded[0] / "episodes" / "77-test" / "experiment.toml")
    tier = experiment.tiers["cpu"]
    recording = Recording(recorded[1])
    recording.con.execute("DELETE FROM job WHERE name = 'copy' AND repeat = 2")
    recording.con.execute("DELETE FROM attempt WHERE name = 'late'")
    todo = rounds.missing(recording, tier, cells(experiment, tier, tier.engines))
    recording.close()
    assert (todo.cells, todo.total, todo.count) == ((), 4 + 3 + 5, 2)
    assert [(repeat, job.name) for repeat, job in todo.jobs] == [(2, "copy")]
    assert [attempt.name for attempt in todo.attempts] == ["late"]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("{", "line 2 of its rows is none: JSONDecodeError"),
        ("[]", "line 2 of its rows is none"),
        ('{"op": "copy"}', r"line 2 .* KeyError\('table'\)"),
        ('{"table": "cell"}', r"line 2 .* KeyError\('cell'\)"),
        ('{"table": "token_score", "odd": 1}', r"line 2 .* KeyError\('token_score.odd'\)"),
        ('{"table": "token_score", "logprob": "x"}', r"line 2 .* ValueError"),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str, named: str) -> None:
    path, recording = tmp_path / "rows.jsonl", create(tmp_path / "t.partial.duckdb")
    path.write_text('{"table": "kernel_sample", "op": "copy"}\n' + line + "\n")
    with pytest.raises(HarnessError, match=named):
        read_rows(recording, path)
    assert read_rows(recording, tmp_path / "none.jsonl") == ({}, {})
    recording.close()


def test_a_job_ends_with_its_time_and_leaves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    said = jobs_run._run(["sh", "-c", "echo begun; sleep 60 & sleep 60"], {}, (), 0.5, log)
    assert said == "ran past 0.5 s; its last lines:\nbegun"
    assert 1 in os.sched_getaffinity(0)
