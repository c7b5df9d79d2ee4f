"""The stamp decides what is built; pip's failure is told with its last lines."""

import ctypes
from pathlib import Path

import pytest

from harness.engines import environments, get
from harness.errors import HarnessError
from tests.engines.fake import Fake


class Locked(Fake):
    name = "locked"
    environments = {"cpu": "locked"}  # noqa: RUF012


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "locks"
    folder.mkdir()
    (folder / "locked.lock").write_text("")
    monkeypatch.setattr(environments, "LOCKS", folder)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return folder


def test_built_once_and_again_when_half_built_or_when_its_lock_changed(
    tmp_path: Path, locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []
    real = environments.run

    def run(argv: list[str], log: Path, engine: str) -> None:
        built.append(" ".join(argv[1:3]))
        if argv[1:3] == ["-m", "venv"]:
            argv = [*argv[:3], "--without-pip", *argv[3:]]
            real(argv, log, engine)

    monkeypatch.setattr(environments, "run", run)
    folder = tmp_path / ".engines" / "locked"
    assert environments.state(Locked(), "cpu", tmp_path) == "not installed"
    environments.ensure(Locked(), "cpu", tmp_path)
    assert environments.state(Locked(), "cpu", tmp_path) == "installed"
    environments.ensure(Locked(), "cpu", tmp_path)
    assert built == ["-m venv", "-m pip"]

    (folder / "left by the build before").touch()
    (folder / environments.STAMP).unlink()
    assert environments.state(Locked(), "cpu", tmp_path) == "half built"
    environments.ensure(Locked(), "cpu", tmp_path)
    assert not (folder / "left by the build before").exists()

    (locks / "locked.lock").write_text("# another\n")
    assert environments.state(Locked(), "cpu", tmp_path) == "built from another lock"
    environments.ensure(Locked(), "cpu", tmp_path)
    assert environments.state(Locked(), "cpu", tmp_path) == "installed"
    assert len(built) == 6


def test_pips_failure_names_the_log_and_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "pip.log"
    log.write_text("")
    argv = ["/bin/sh", "-c", "seq 1 20; echo 'ERROR: No matching distribution'; exit 1"]
    with pytest.raises(HarnessError) as caught:
        environments.run(argv, log, "locked")
    lines = str(caught.value).splitlines()
    assert lines[0] == f"locked: could not be built (exit 1); whole log: {log}"
    assert lines[1] == "14" and lines[-1] == "ERROR: No matching distribution"


def test_engines_without_an_environment_need_none(tmp_path: Path) -> None:
    assert environments.lock_path(get("emulator"), "cpu") is None
    assert environments.state(get("external"), "cpu", tmp_path) == "needs no environment"
    environments.ensure(get("emulator"), "cpu", tmp_path)
    assert not (tmp_path / ".engines").exists()


def test_the_stub_holds_the_symbol(tmp_path: Path) -> None:
    environments.build_stub(tmp_path / "stub", tmp_path / "log")
    stub = ctypes.CDLL(str(tmp_path / "stub" / "libcuda.so.1"))
    assert stub.cuPointerGetAttribute() == 100


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HarnessError, match="sglang: a C compiler is needed"):
        environments.build_stub(tmp_path / "stub", tmp_path / "log")
