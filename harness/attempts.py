"""Attempts: what an engine is asked once, to see what comes of it.

An engine that refuses a flag, dies of it, or answers with an error gives a row, with its own words
out of its log. Nothing that it does stops the recording.
"""

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from harness.cell import Target
from harness.engines import external
from harness.engines.redact import redact
from harness.errors import HarnessError
from harness.experiment import Attempt
from harness.session import Session, engine_run

ERROR = re.compile(r"\w(Error|Exception)\b|\bERROR\b|\berror:|\b[Nn]ot supported|[Uu]nsupported")
ERRORS_KEPT = 5
ANSWER_CHARACTERS = 2000
DEATH_PATIENCE_S = 5.0  # from a broken connection, or an error of the server's own, to its end
LOG_PATIENCE_S = 0.5  # from an answer to what the log says of it


def run_attempt(session: Session, attempt: Attempt) -> str:
    """Makes the attempt and commits its row; returns the outcome."""
    recording = session.recording
    run_id = recording.next_id("engine_run", "run_id")
    row: dict[str, Any] = {"outcome": "not_started", "http_status": None, "answer": None}
    started_ns, until_ns = time.monotonic_ns(), None
    starts = engine_run(session, attempt.name, attempt, attempt.timeout_s)
    with suppress(HarnessError), starts as (_, target):  # the error is in the run's exit_note
        row = _ask(session, attempt, target)
        time.sleep(LOG_PATIENCE_S)
        until_ns = time.monotonic_ns()  # what it says when it is stopped is no evidence
    lines = recording.con.execute(
        "SELECT line FROM log_line WHERE run_id = $run AND t_ns <= coalesce($until, t_ns)"
        " ORDER BY rowid",
        {"run": run_id, "until": until_ns},
    ).fetchall()
    with recording.transaction():
        ids = {
            "attempt_id": recording.next_id("attempt", "attempt_id"),
            "session_id": session.session_id,
            "run_id": run_id,
            "name": attempt.name,
            "asks": attempt.asks,
            "words": evidence([line for (line,) in lines], attempt.keep),
            "started_ns": started_ns,
            "ended_ns": time.monotonic_ns(),
        }
        recording.insert("attempt", [row | ids])
    return str(row["outcome"])


def evidence(lines: Sequence[str], keep: Sequence[str]) -> list[str]:
    """Of a log the lines that fit a pattern, and the last that look like an error, each once."""
    errors = [number for number, line in enumerate(lines) if ERROR.search(line)][-ERRORS_KEPT:]
    kept = [n for n, line in enumerate(lines) if any(re.search(each, line) for each in keep)]
    return list(dict.fromkeys(lines[number] for number in sorted({*errors, *kept})))


def _ask(session: Session, attempt: Attempt, target: Target) -> dict[str, Any]:
    """Outcome, status and answer of the attempt's request."""
    engine, endpoint = target.engine, attempt.endpoint if attempt.body else "chat"
    if attempt.body:
        named = engine.request_body(endpoint, None, "", 1, 0, target.served_name)
        body = {key: named[key] for key in ("model",) if key in named} | json.loads(attempt.body)
    else:
        body = external.probe_body(engine, target.served_name, session.tier.probe[0])
    url = engine.endpoint_url(target.base_url, endpoint)
    try:
        status, data = external.exchange(url, json.dumps(body).encode(), attempt.timeout_s)
    except HarnessError:
        outcome = "no_answer" if _lives(target) else "died"
        return {"outcome": outcome, "http_status": None, "answer": None}
    said = redact(answer_text(data.decode(errors="replace")))[:ANSWER_CHARACTERS]
    outcome = "rejected" if status >= 400 else "answered"
    if status >= 500 and not _lives(target):
        outcome = "died"
    return {"outcome": outcome, "http_status": status, "answer": said}


def _lives(target: Target) -> bool:
    deadline_s = time.monotonic() + DEATH_PATIENCE_S
    while target.alive() and time.monotonic() < deadline_s:
        time.sleep(0.1)
    return target.alive()


def answer_text(said: str) -> str:
    """What the model said, out of a whole or a streamed answer; all of it where it is neither."""
    try:
        return "".join(_parts(said)) or said
    except (AttributeError, KeyError, TypeError, ValueError):
        return said


def _parts(said: str) -> Iterator[str]:
    streamed = [line[5:] for line in said.splitlines() if line.startswith("data:")]
    for message in streamed or [said]:
        if message.strip() == "[DONE]":
            continue
        for choice in json.loads(message).get("choices") or []:
            part = choice.get("message") or choice.get("delta") or choice
            yield part.get("content") or part.get("text") or ""
