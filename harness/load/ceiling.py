"""What this client can bear on this machine, as `make calibrate` found it."""

import json
from pathlib import Path
from typing import Any

from harness.errors import HarnessError

FOLDER = Path("data") / "calibration"


def newest_calibration(root: Path, machine: dict[str, object]) -> dict[str, Any] | None:
    """The newest calibration of a machine with as many cores of the same processor; None where
    there is none. Raises HarnessError naming the file where it can't be read.
    """
    for path in sorted((root / FOLDER).glob("*.json"), reverse=True):
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            alike = all(found["machine"][key] == machine[key] for key in ("cpu", "cores"))
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise HarnessError(f"{path}: not a calibration of this harness: {error!r}") from error
        if alike:
            return found
    return None


def ceiling_share(
    calibration: dict[str, Any], processes: int, chunks_per_s: float, requests_per_s: float
) -> float | None:
    """The larger of the shares of the two ceilings; None where so many processes were not tried."""
    ceiling = calibration["processes"].get(str(processes))
    if ceiling is None:
        return None
    return max(chunks_per_s / ceiling["chunks_per_s"], requests_per_s / ceiling["requests_per_s"])
