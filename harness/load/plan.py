"""What the load process is told to do, and nothing else: it never sees the experiment file.

The recorder writes a plan to disk, starts `python -m harness.load PLAN`, and reads back the spool.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """One request of a plan.

    body: the HTTP body as JSON text. due_ns: offset from the start of its phase at which it is to
    be sent; None in a closed loop, where it is sent as soon as a slot is free.
    """

    request_id: int
    phase: str  # "warmup" | "measured"
    body: str
    due_ns: int | None = None


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """A whole cell for the load process.

    The cell ends when at least min_requests measured requests are done and min_duration_s has
    passed since the measured phase began, whichever comes later; warm-up requests all finish
    before the measured phase begins. timeout_s bounds one request. core: CPU to pin to, at
    real-time priority where that is permitted; None: neither.
    """

    url: str  # http://127.0.0.1:8000/v1/completions
    in_flight: int
    min_requests: int
    min_duration_s: float
    timeout_s: float
    core: int | None
    spool_path: str
    requests: tuple[PlannedRequest, ...]

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "LoadPlan":
        raw = json.loads(path.read_text(encoding="utf-8"))
        raw["requests"] = tuple(PlannedRequest(**request) for request in raw["requests"])
        return cls(**raw)
