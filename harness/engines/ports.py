"""TCP ports on loopback: a free one, and who holds a taken one."""

import contextlib
import errno
import socket

import psutil

from harness.errors import HarnessError


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def require_free(port: int, engine: str) -> None:
    """Raises HarnessError, naming the holder where it can be seen, if the port is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno == errno.EACCES:
                raise HarnessError(
                    f"{engine}: port {port} needs more rights; use PORT=0 for a free port"
                ) from None
            raise HarnessError(
                f"{engine}: port {port} is in use by {_holder(port)}; "
                "stop it, or use PORT=0 for a free port"
            ) from None


def _holder(port: int) -> str:
    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections(kind="tcp"):
            listens = connection.status == psutil.CONN_LISTEN
            if listens and connection.laddr[1:2] == (port,) and connection.pid is not None:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return "a process of another user"
