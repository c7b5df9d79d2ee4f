"""The emulator (emulator.py) as an engine: known timing and faults, for tests and calibration."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from harness.engines.base import Engine, Launch, Start

PACKAGE_ROOT = Path(__file__).parents[2]


class Emulator(Engine):
    name = "emulator"
    pool_pattern = r"KV pool: (\d+) tokens"
    reset_path = "/reset_cache"
    stream_options: ClassVar[Mapping[str, bool]] = {"continuous_usage_stats": True}

    def argv(self, start: Start) -> list[str]:
        argv = [sys.executable, "-m", "harness.engines.emulator", "--port", str(start.port)]
        return [*argv, "--served-name", start.served_name]

    def env(self, home: Path, tier: str) -> dict[str, str]:
        return {"PYTHONPATH": str(PACKAGE_ROOT)}

    def version(self, launch: Launch, base_url: str) -> str | None:
        from harness import __version__

        return __version__
