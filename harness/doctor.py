"""What this machine has and lacks, each with the command that mends it."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.engines import ENGINES, environments
from harness.errors import HarnessError
from harness.load.ceiling import newest_calibration
from harness.models import BUILDERS
from harness.telemetry import gpu, machine

ENGINE_DISK_BYTES = 16e9  # the three CPU environments take 14 GB
ENGINE_MEMORY_BYTES = 6e9


@dataclass(frozen=True, slots=True)
class Finding:
    """state: ok, warn or missing. mend: a command, or empty."""

    name: str
    state: str
    detail: str
    mend: str = ""


def examine(root: Path) -> list[Finding]:
    tier = machine.tier()
    return [
        _python(),
        _cores(),
        _size("memory", psutil.virtual_memory().available, ENGINE_MEMORY_BYTES),
        _size("disk", shutil.disk_usage(root).free, ENGINE_DISK_BYTES),
        _gpu(),
        _calibration(root),
        _program("gcc", "SGLang on a CPU needs it once", "apt-get install gcc"),
        _program("chromium", "the browser tests need it", "apt-get install chromium"),
        *[_engine(name, tier, root) for name in ENGINES if name not in ("external", "emulator")],
        _models(root),
        *_recordings(root),
    ]


def _python() -> Finding:
    try:
        environments.engines_python()
    except HarnessError as error:
        return Finding(
            "python", "missing", str(error), "apt-get install python3.11 python3.11-venv"
        )
    return Finding("python", "ok", sys.version.split()[0])


def _cores() -> Finding:
    cores = psutil.cpu_count() or 1
    if cores >= 2:
        return Finding("cores", "ok", f"{cores}")
    return Finding("cores", "warn", "one core: engine and client would share it", "")


def _size(name: str, have_bytes: float, need_bytes: float) -> Finding:
    detail = f"{have_bytes / 1e9:.0f} GB free, {need_bytes / 1e9:.0f} GB wanted for recording"
    return Finding(name, "ok" if have_bytes >= need_bytes else "warn", detail)


def _gpu() -> Finding:
    if gpu.count():
        return Finding("gpu", "ok", ", ".join(gpu.names()) + " (tier gpu)")
    return Finding("gpu", "ok", "none: this machine records the cpu tier")


def _calibration(root: Path) -> Finding:
    mend = "make calibrate"
    try:
        found = newest_calibration(root, machine.describe())
    except HarnessError as error:
        return Finding("calibration", "warn", str(error), mend)
    if found is None:
        detail = "none of this machine: recordings can't say how near the client is to its limits"
        return Finding("calibration", "missing", detail, mend)
    counts = ", ".join(found["processes"]) or "no"
    return Finding("calibration", "ok", f"of {found['measured_at']}, {counts} load processes")


def _program(name: str, why: str, mend: str) -> Finding:
    path = shutil.which(name)
    if path:
        return Finding(name, "ok", "found")
    return Finding(name, "missing", why, mend)


def _engine(name: str, tier: str, root: Path) -> Finding:
    state = environments.state(ENGINES[name], tier, root)
    if state == "installed":
        return Finding(f"engine {name}", "ok", state)
    return Finding(
        f"engine {name}",
        "missing",
        f"{state}; `make record` installs it when it is needed",
        f".venv/bin/python -m harness engines --setup {name}",
    )


def _models(root: Path) -> Finding:
    made = {name: (root / ".engines" / "models" / name).is_dir() for name in BUILDERS}
    lacking = ", ".join(name for name, there in made.items() if not there)
    if not lacking:
        return Finding("models", "ok", f"all {len(made)} of harness/models are made")
    detail = f"not made: {lacking}; `make record` makes those that it needs"
    return Finding("models", "missing", detail, "make models")


def _recordings(root: Path) -> list[Finding]:
    return [
        Finding(
            f"recording {path.parent.name}/{path.name}",
            "warn",
            "unfinished",
            f"make record EPISODE={path.parent.name}",
        )
        for path in sorted((root / "data").glob("*/*.partial.duckdb"))
    ]
