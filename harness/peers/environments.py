"""Where a tool is installed: the engine's environment that holds it, or one of its own.

Built like the engines' (harness/engines/environments.py), from locks/ beside this file.
"""

from pathlib import Path

from harness.engines import environments
from harness.peers.tools import Tool

LOCKS = Path(__file__).parent / "locks"


def ensure(tool: Tool, root: Path) -> None:
    """Builds the tool's environment where it is missing. Raises HarnessError if it can't be."""
    if tool.environment:
        own = LOCKS / f"{tool.environment}.lock"
        lock = own if own.exists() else environments.LOCKS / own.name
        environments.ensure_lock(lock, tool.name, root, tool.python)


def version(tool: Tool, root: Path) -> str | None:
    """The installed version, as its environment says; None where it isn't installed."""
    name = tool.package.replace("-", "_")
    home = root / ".engines" / tool.environment
    found = sorted(home.glob(f"lib/python*/site-packages/{name}-*.dist-info"))
    return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else None
