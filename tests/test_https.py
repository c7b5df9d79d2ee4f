"""A whole recording of a server behind TLS that wants a key: which is sent, and kept nowhere."""

import contextlib
import re
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.recording.store import connect
from tests.emulate import running_emulator
from tests.test_record import finish, root_with

KEY = "sk-a-key-that-nobody-may-see"


def _pump(source: socket.socket, sink: socket.socket, seen: list[bytes]) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            seen.append(data)
            sink.sendall(data)
    for side in (source, sink):
        with contextlib.suppress(OSError):
            side.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def behind_tls(url: str, folder: Path) -> Iterator[tuple[str, Path, list[bytes]]]:
    """The address of a TLS front to a server, its certificate, and what clients have sent it."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1"]
    argv += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key)]
    subprocess.run([*argv, "-out", str(certificate)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    seen: list[bytes] = []
    behind = ("127.0.0.1", int(url.rpartition(":")[2]))

    def serve(front: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                wire = context.wrap_socket(front.accept()[0], server_side=True)
                server = socket.create_connection(behind)
                threading.Thread(target=_pump, args=(wire, server, seen), daemon=True).start()
                threading.Thread(target=_pump, args=(server, wire, []), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as front:
        threading.Thread(target=serve, args=(front,), daemon=True).start()
        yield f"https://127.0.0.1:{front.getsockname()[1]}", certificate, seen


def test_a_recording_over_https_holds_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = root_with(tmp_path / "root")
    with (
        running_emulator(ttft_ms=20, gap_ms=5) as url,
        behind_tls(url, tmp_path) as (secure, certificate, seen),
    ):
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        summary = finish(root, "--url", secure)
    sent = b"".join(seen)
    posts = len(re.findall(rb"POST /v1/completions", sent))
    assert posts >= 2 * (2 + 6)
    assert sent.count(b"Authorization: Bearer " + KEY.encode()) >= posts
    recording = root / summary["recording"]
    with connect(recording) as con:
        unstamped = "SELECT sum((client->>'unstamped_reads')::INT), count(*) FROM cell"
        assert con.execute(unstamped).fetchall() == [(0, 2)]
        assert con.execute("SELECT DISTINCT error FROM request").fetchall() == [(None,)]
        tables = [
            name for (name,) in con.execute("SELECT table_name FROM duckdb_tables").fetchall()
        ]
        for table in tables:
            rows = con.execute(f"SELECT t::VARCHAR FROM {table} t").fetchall()
            assert not any(KEY in row for (row,) in rows), table
    for path in root.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes(), path
