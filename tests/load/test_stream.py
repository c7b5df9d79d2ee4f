"""One connection against a scripted server in a thread."""

import contextlib
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from harness.load.stream import Connection
from tests.load.answers import DONE, END, HEAD, frame, text

ANSWER = HEAD + frame(text("a", finish="stop")) + frame(DONE) + END


def _play(wire: socket.socket, answers: Sequence[Sequence[bytes]], seen: list[bytes]) -> None:
    for writes in answers:
        seen.append(wire.recv(65536))
        for number, data in enumerate(writes):
            time.sleep(0.02 if number else 0)
            wire.sendall(data)


@contextlib.contextmanager
def scripted(
    *connections: Sequence[Sequence[bytes]], tls: ssl.SSLContext | None = None
) -> Iterator[tuple[int, list[bytes]]]:
    """Yields the port and the requests seen. Each connection is a list of answers, each answer a
    list of writes 20 ms apart; after its last answer a connection is closed."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for answers in connections:
                plain, _ = server.accept()
                with contextlib.suppress(OSError):  # the client may leave at any point
                    wire = tls.wrap_socket(plain, server_side=True) if tls else plain
                    with wire:
                        _play(wire, answers, seen)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1], seen
        thread.join(5)


def test_two_requests_use_one_connection() -> None:
    with scripted([[ANSWER], [ANSWER[:60], ANSWER[60:]]]) as (port, seen):
        connection = Connection(f"http://127.0.0.1:{port}/v1/completions?x=1", "sk-key")
        first, second = connection.exchange(b"{}", 5), connection.exchange(b"{1}", 5)
    assert (first.error, second.error) == (None, None)
    assert (first.status, bytes(first.data), first.sizes) == (200, ANSWER, [len(ANSWER)])
    assert (bytes(second.data), second.sizes) == (ANSWER, [60, len(ANSWER) - 60])
    assert second.kernel_ns[1] - second.kernel_ns[0] >= 15_000_000
    assert second.user_ns[-1] == second.ended_ns
    lines = seen[1].decode().split("\r\n")
    assert lines[0] == "POST /v1/completions?x=1 HTTP/1.1"
    assert lines[-1] == "{1}"
    assert f"Host: 127.0.0.1:{port}" in lines
    assert {"Authorization: Bearer sk-key", "Content-Length: 3"} <= set(lines)


def test_a_kept_connection_that_the_server_closed_is_replaced_once() -> None:
    with scripted([[ANSWER]], [[ANSWER]]) as (port, seen):
        connection = Connection(f"http://127.0.0.1:{port}/", None)
        first = connection.exchange(b"{}", 5)
        time.sleep(0.05)  # the server closes meanwhile
        second = connection.exchange(b"{}", 5)
    assert (first.error, second.error) == (None, None)
    assert bytes(second.data) == ANSWER
    assert len(seen) == 2


def test_a_new_connection_closed_without_an_answer_is_an_error() -> None:
    with scripted([[b""]]) as (port, seen):
        got = Connection(f"http://127.0.0.1:{port}/", None).exchange(b"{}", 5)
    assert got.error == "connection closed"
    assert len(seen) == 1  # not sent again
    assert got.sent_ns is not None and got.ended_ns > got.sent_ns


@pytest.mark.parametrize("cut", [10, len(HEAD) + 7])
def test_an_answer_cut_short(cut: int) -> None:
    with scripted([[ANSWER[:cut]]]) as (port, _):
        got = Connection(f"http://127.0.0.1:{port}/", None).exchange(b"{}", 5)
    assert (got.error, bytes(got.data)) == ("stream cut", ANSWER[:cut])


def test_an_answer_that_ends_with_its_connection() -> None:
    answer = b"HTTP/1.1 200 OK\r\n\r\n" + text("a") + DONE
    with scripted([[answer]], [[ANSWER]]) as (port, _):
        connection = Connection(f"http://127.0.0.1:{port}/", None)
        first, second = connection.exchange(b"{}", 5), connection.exchange(b"{}", 5)
    assert (first.error, bytes(first.data)) == (None, answer)
    assert (second.error, bytes(second.data)) == (None, ANSWER)


def test_what_is_no_http_and_what_never_comes() -> None:
    with scripted([[b"SSH-2.0\r\n\r\n"]], [[ANSWER[:60], b"", b"", b"", b""]]) as (port, _):
        connection = Connection(f"http://127.0.0.1:{port}/", None)
        assert (connection.exchange(b"{}", 5).error or "").startswith("bad HTTP: not an HTTP/1.1")
        late = connection.exchange(b"{}", 0.03)
    assert (late.error, bytes(late.data)) == ("timeout", ANSWER[:60])


def test_a_key_that_the_server_echoes_is_blotted_out() -> None:
    echo = HEAD + frame(b"wrong key sk-secret!") + END
    with scripted([[echo]]) as (port, _):
        got = Connection(f"http://127.0.0.1:{port}/", "sk-secret").exchange(b"{}", 5)
    assert bytes(got.data) == echo.replace(b"sk-secret", b"*********")


def test_a_key_so_short_that_any_answer_holds_it_changes_nothing() -> None:
    with scripted([[ANSWER]]) as (port, _):
        got = Connection(f"http://127.0.0.1:{port}/", "t").exchange(b"{}", 5)
    assert bytes(got.data) == ANSWER


def test_tls_keeps_the_kernels_stamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1"]
    argv += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key)]
    subprocess.run([*argv, "-out", str(certificate)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with scripted([[ANSWER], [ANSWER[:60], ANSWER[60:]]], tls=context) as (port, _):
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        connection = Connection(f"https://127.0.0.1:{port}/", None)
        first, second = connection.exchange(b"{}", 5), connection.exchange(b"{}", 5)
    assert (first.error, bytes(first.data)) == (None, ANSWER)
    assert (second.error, second.sizes) == (None, [60, len(ANSWER) - 60])
    assert all(0 < time.time_ns() - stamp < 60_000_000_000 for stamp in second.kernel_ns)
    assert second.kernel_ns[1] - second.kernel_ns[0] >= 15_000_000
    with scripted([[ANSWER]], tls=context) as (port, _):
        monkeypatch.delenv("SSL_CERT_FILE")
        got = Connection(f"https://127.0.0.1:{port}/", None).exchange(b"{}", 5)
        assert "CERTIFICATE_VERIFY_FAILED" in (got.error or "")
