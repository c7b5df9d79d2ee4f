import dataclasses
from pathlib import Path

import duckdb
import pytest

from harness.errors import HarnessError
from harness.render import manifest
from tests.render import recordings


def test_an_entry_says_what_the_recording_holds(root: Path) -> None:
    (entry,) = manifest.verify(root)
    assert entry.file == "data/00/made.duckdb"
    assert (entry.episode, entry.tier, entry.finished) == ("00", "cpu", True)
    assert entry.recorded == "2026-11-30 11:00"
    assert entry.machine == "Test CPU, 2 cores, 8 GiB"
    assert entry.variants == ["sglang", "transformers", "vllm"]
    assert (entry.valid_cells, entry.invalid_cells) == (53, 1)  # 3 engines x 3 repeats x 6 lengths


def test_updating_replaces_the_entry(root: Path) -> None:
    path = root / "data" / "00" / "made.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute("UPDATE cell SET verdict = 'VALID'")
    with pytest.raises(HarnessError, match=r"data/00/made\.duckdb: its content is not what"):
        manifest.verify(root)
    manifest.update(root, path)
    assert [entry.valid_cells for entry in manifest.verify(root)] == [54]


def test_a_lost_file_and_a_foreign_file_are_named(root: Path) -> None:
    path = root / "data" / "00" / "made.duckdb"
    other = recordings.write(root / "data" / "01" / "other.duckdb")
    with pytest.raises(HarnessError, match=r"data/01/other\.duckdb: not in"):
        manifest.verify(root)
    other.rename(other.with_name("other.partial.duckdb"))
    manifest.verify(root)
    path.unlink()
    with pytest.raises(HarnessError, match=r"data/00/made\.duckdb: named in"):
        manifest.verify(root)


def test_what_is_no_recording_is_named(root: Path) -> None:
    path = root / "data" / "00" / "torn.duckdb"
    path.write_bytes(b"not a database")
    with pytest.raises(HarnessError, match=r"torn\.duckdb: is not a recording"):
        manifest.update(root, path)
    (root / manifest.MANIFEST).write_text('[[recording]]\nfile = "x"\n', encoding="utf-8")
    with pytest.raises(HarnessError, match=r"manifest\.toml: cannot be read"):
        manifest.verify(root)


def test_the_newest_finished_recording_is_taken(root: Path) -> None:
    (first,) = manifest.read(root)
    later = dataclasses.replace(first, file="b", recorded="2026-12-01 09:00")
    unfinished = dataclasses.replace(later, file="c", finished=False, recorded="2026-12-02 09:00")
    assert manifest.newest([later, first, unfinished], "00", "cpu") == later
    alone = dataclasses.replace(later, file="d", variants=["vllm"], recorded="2026-12-03 09:00")
    assert manifest.newest([first, alone], "00", "cpu") == first
    assert manifest.newest([later, first], "00", "gpu") is None


def test_markup_in_a_recording_survives_the_manifest(tmp_path: Path) -> None:
    path = recordings.write(tmp_path / "data" / "00" / "hostile.duckdb", hostile=True)
    entry = manifest.update(tmp_path, path)
    assert manifest.verify(tmp_path) == [entry]
    assert recordings.MARKUP in entry.machine
