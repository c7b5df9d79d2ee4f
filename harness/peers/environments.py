"""Where a tool is installed: the engine's environment that holds it, or one of its own.

Built like the engines' (harness/engines/environments.py), from locks/ beside this file.
"""

from pathlib import Path

from harness.engines import environments
from harness.errors import HarnessError
from harness.peers.tools import Tool

LOCKS = Path(__file__).parent / "locks"


def ensure(tool: Tool, root: Path) -> None:
    """Builds the tool's environment where it is missing. Raises HarnessError naming what is needed
    if it can't be."""
    if not tool.environment:
        return
    own = LOCKS / f"{tool.environment}.lock"
    lock = own if own.exists() else environments.LOCKS / own.name
    if environments.lock_state(lock, root) != "installed":
        _python(tool)
    environments.ensure_lock(lock, tool.name, root, tool.python)


def _python(tool: Tool) -> None:
    try:
        environments.engines_python(tool.python)
    except HarnessError as fault:
        wanted = ".".join(map(str, tool.python))
        raise HarnessError(
            f"{tool.name} needs Python {wanted}, and no python{wanted} is on the path: "
            "install it and run the benchmark again, which then builds the tool's environment"
        ) from fault


def version(tool: Tool, root: Path) -> str | None:
    """The installed version, as its environment says; None where it isn't installed."""
    name = tool.package.replace("-", "_")
    home = root / ".engines" / tool.environment
    found = sorted(home.glob(f"lib/python*/site-packages/{name}-*.dist-info"))
    return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else None
