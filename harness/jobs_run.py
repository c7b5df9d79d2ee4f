"""Jobs: scripts of harness/jobs that measure something without requests, such as bare kernels.

    PYTHON harness/jobs/SCRIPT --out FILE --repeat N ARGS

A script stands alone and runs with the Python of an engine's environment. It writes JSON lines,
each with its table and columns, {"table": "kernel_sample", "op": "copy", ...}; what it leaves out
is NULL. One line {"table": "job", "versions": {...}, "facts": {...}} tells of the run itself. A job
that fails is a row with its fault, and the recording goes on.
"""

import json
import os
import signal
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.engines import ENGINES, adapters, environments
from harness.engines.base import offline
from harness.engines.process import die_with_parent
from harness.engines.redact import redact
from harness.errors import HarnessError
from harness.experiment import Job
from harness.recording.store import Recording, sha256
from harness.session import Session

SCRIPTS = Path(__file__).parent / "jobs"
TABLES = ("kernel_sample", "token_score", "training_step")
TAIL_CHARACTERS = 2000
Rows = dict[str, list[dict[str, Any]]]  # by table


def run_job(session: Session, job: Job, repeat: int) -> str | None:
    """Runs a job and commits its rows; returns its fault."""
    recording, root = session.recording, session.asked.root
    script, cores = SCRIPTS / job.script, session.tier.cores_of(job)
    about: dict[str, Any] = {"versions": None, "facts": None, "fault": None}
    rows: Rows = {}
    with tempfile.TemporaryDirectory(prefix="token-by-token-") as folder:
        out, log = Path(folder) / "rows.jsonl", Path(folder) / "log"
        python = environments.python_of(job.environment, job.name, root)
        argv = [python, str(script), "--out", str(out), "--repeat", str(repeat)]
        argv += arguments(session, job)
        started_ns = time.monotonic_ns()
        about["fault"] = _run(argv, _env(session, job), cores, job.timeout_s, log)
        ended_ns = time.monotonic_ns()
        try:
            told, rows = read_rows(recording, out)
            about |= told
        except HarnessError as error:
            about["fault"] = about["fault"] or redact(str(error))
    lock = environments.environment_lock(job.environment, job.name) if job.environment else None
    about |= {
        "session_id": session.session_id,
        "name": job.name,
        "script": job.script,
        "script_sha256": sha256(script),
        "environment": job.environment,
        "lock_sha256": sha256(lock) if lock else None,
        "argv": redact(["ROWS" if word == str(out) else word for word in argv]),
        "repeat": repeat,
        "cores": list(cores) or None,
        "started_ns": started_ns,
        "ended_ns": ended_ns,
    }
    try:
        _commit(recording, about, rows)
    except HarnessError as error:  # a value that does not fit its column: none of the rows is kept
        about["fault"] = redact(str(error))
        _commit(recording, about, {})
    fault: str | None = about["fault"]
    return fault


def arguments(session: Session, job: Job) -> list[str]:
    """The declared ones, with the folders that they name written out."""
    written = adapters.with_models(job.args, session.models[""], session.asked.root)
    episode = str(session.experiment.path.parent)
    return [word.replace("{episode}", episode) for word in written]


def _env(session: Session, job: Job) -> dict[str, str]:
    """What an engine of that environment has, with the job's own number of threads."""
    home, tier = session.asked.root / ".engines" / job.environment, session.tier.name
    own = {
        key: value
        for engine in ENGINES.values()
        if job.environment and engine.environments.get(tier) == job.environment
        for key, value in engine.env(home, tier).items()
    }
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(job.threads))
    return own | offline() | threads


def _run(
    argv: list[str], env: Mapping[str, str], cores: tuple[int, ...], timeout_s: float, log: Path
) -> str | None:
    """Runs the script to its end, or to that of its time; returns how it failed, if it did.

    It and its children are one process group, of which nothing is left.
    """
    free = os.sched_getaffinity(0)
    with log.open("wb") as written:
        try:
            os.sched_setaffinity(0, cores or range(os.cpu_count() or 1))  # it is inherited
            process = subprocess.Popen(
                argv,
                env=os.environ | dict(env),
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        finally:
            os.sched_setaffinity(0, free)
        try:
            code = process.wait(timeout_s)
            how = f"exit code {code}" if code else None
        except subprocess.TimeoutExpired:
            how = f"ran past {timeout_s:g} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    tail = log.read_text(errors="replace")[-TAIL_CHARACTERS:].strip()
    return redact(f"{how}; its last lines:\n{tail}") if how else None


def read_rows(recording: Recording, path: Path) -> tuple[dict[str, Any], Rows]:
    """What a job wrote: columns of its own row, and its rows by table, whole.

    Raises HarnessError naming the line where it is no row of a table.
    """
    kinds = _columns(recording)
    told: dict[str, Any] = {}
    rows: Rows = defaultdict(list)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            table = row.pop("table")
            known = kinds[table] if table != "job" else {"versions": "JSON", "facts": "JSON"}
            unknown = set(row) - set(known)
            if unknown:
                raise KeyError(f"{table}.{min(unknown)}")
            if table == "job":
                told |= row
            else:
                rows[table].append({name: _fit(row.get(name), known[name]) for name in known})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise HarnessError(f"line {number} of its rows is none: {error!r}") from None
    return told, rows


def _columns(recording: Recording) -> dict[str, dict[str, str]]:
    """Of each table that a job may fill the columns and their types, but for the job's id."""
    kinds: dict[str, dict[str, str]] = {table: {} for table in TABLES}
    found = recording.con.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns()"
        " WHERE list_contains($tables, table_name) AND column_name <> 'job_id'",
        {"tables": list(TABLES)},
    ).fetchall()
    for table, column, kind in found:
        kinds[table][column] = kind
    return kinds


def _fit(value: Any, kind: str) -> Any:
    """A whole number in a column of fractions would make the column one of whole numbers."""
    return float(value) if value is not None and kind in ("DOUBLE", "FLOAT") else value


def _commit(recording: Recording, about: dict[str, Any], rows: Rows) -> None:
    with recording.transaction():
        job_id = recording.next_id("job", "job_id")
        recording.insert("job", [about | {"job_id": job_id}])
        for table, some in rows.items():
            recording.insert(table, [row | {"job_id": job_id} for row in some])
