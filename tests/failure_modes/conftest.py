"""Records one configuration of experiment.toml, once, by the real harness."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import duckdb
import pytest
from rich.console import Console

from harness.record import record
from harness.recording.store import connect
from harness.session import Request

Recorded = Callable[[str], duckdb.DuckDBPyConnection]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """recorded("empty"): the recording of that configuration, which has one cell."""
    root = tmp_path_factory.mktemp("failure_modes")
    folder = root / "episodes" / "77-failure-modes"
    folder.mkdir(parents=True)
    shutil.copy(Path(__file__).parent / "experiment.toml", folder)
    made: dict[str, duckdb.DuckDBPyConnection] = {}
    with ExitStack() as stack:

        def get(variant: str) -> duckdb.DuckDBPyConnection:
            if variant not in made:
                asked = Request(root, "77", "cpu", engine=variant)
                summary = record(asked, Console(quiet=True))
                made[variant] = stack.enter_context(connect(root / summary["recording"]))
            return made[variant]

        yield get
