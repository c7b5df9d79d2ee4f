"""data/manifest.toml: what each committed recording is, and the hash that it must still have.

The site is built from the files that the manifest names and from no other. A file that was changed,
lost, or added by hand stops the build, with its name.
"""

import json
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb

from harness.errors import HarnessError
from harness.recording.store import sha256

MANIFEST = Path("data") / "manifest.toml"
SCHEMA_VERSIONS = (4,)
HEADER = "# Written by the harness: one entry a recording. Do not edit by hand.\n"


@dataclass(frozen=True, slots=True)
class Entry:
    """One recording. recorded: date (UTC) of its last cell. machine: one line."""

    file: str
    sha256: str
    size_bytes: int
    schema_version: int
    recording_id: str
    episode: str
    tier: str
    finished: bool
    recorded: str
    machine: str
    variants: list[str]
    valid_cells: int
    invalid_cells: int


def read(root: Path) -> list[Entry]:
    """The entries, in the order of the file; none where there is no manifest."""
    path = root / MANIFEST
    if not path.exists():
        return []
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("recording", [])
        return [Entry(**table) for table in tables]
    except (tomllib.TOMLDecodeError, TypeError, UnicodeDecodeError) as error:
        raise HarnessError(f"{path}: cannot be read: {error}") from error


def update(root: Path, path: Path) -> Entry:
    """Writes or replaces the entry of one recording (a file under data/)."""
    entry = describe(root, path)
    entries = [other for other in read(root) if other.file != entry.file] + [entry]
    entries.sort(key=lambda each: each.file)
    text = HEADER + "".join(_table(each) for each in entries)
    target = root / MANIFEST
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(target)
    return entry


def verify(root: Path) -> list[Entry]:
    """All entries, each file present and unchanged; HarnessError at the first that is not."""
    entries = read(root)
    named = {entry.file for entry in entries}
    for entry in entries:
        path = root / entry.file
        if not path.exists():
            raise HarnessError(f"{entry.file}: named in {MANIFEST} but not there")
        if sha256(path) != entry.sha256:
            raise HarnessError(
                f"{entry.file}: its content is not what {MANIFEST} says (sha256 differs): "
                "restore the file, or record it again"
            )
    for path in sorted((root / "data").glob("*/*.duckdb")):
        file = path.relative_to(root).as_posix()
        if file not in named and not file.endswith(".partial.duckdb"):
            raise HarnessError(
                f"{file}: not in {MANIFEST}: move it out of data/ "
                "(`make record` enters what it records by itself)"
            )
    return entries


def newest(entries: list[Entry], episode: str, tier: str) -> Entry | None:
    """The recording that an episode shows on a tier: finished, and the newest of those that cover
    most variants, so that a recording of one alone does not take the others off the page.
    """
    fitting = [e for e in entries if e.finished and e.episode == episode and e.tier == tier]
    return max(fitting, key=lambda e: (len(e.variants), e.recorded, e.recording_id), default=None)


def describe(root: Path, path: Path) -> Entry:
    """Reads the entry of one recording out of the file itself."""
    if path.with_name(path.name + ".wal").exists():
        raise HarnessError(f"{path}: has a .wal beside it, so it was not closed: open it once")
    try:
        with duckdb.connect(str(path), read_only=True) as db:
            db.execute("SET TimeZone = 'UTC'")
            row = db.execute(
                "SELECT schema_version, recording_id, episode, tier, finished_at IS NOT NULL,"
                " strftime(coalesce(finished_at, created_at), '%Y-%m-%d %H:%M') FROM recording"
            ).fetchone()
            machine = db.execute("SELECT machine FROM session ORDER BY session_id DESC").fetchone()
            valid = db.execute(
                "SELECT count(*) FILTER (verdict = 'VALID'),"
                " count(*) FILTER (verdict <> 'VALID') FROM cell"
            ).fetchone()
            variants = db.execute("SELECT DISTINCT variant FROM cell ORDER BY variant").fetchall()
    except duckdb.Error as error:
        raise HarnessError(f"{path}: is not a recording that can be read: {error}") from error
    if row is None or machine is None or valid is None:
        raise HarnessError(f"{path}: has no row in its table recording or session")
    if row[0] not in SCHEMA_VERSIONS:
        raise HarnessError(f"{path}: has schema version {row[0]}; known: {SCHEMA_VERSIONS}")
    return Entry(
        file=path.resolve().relative_to(root.resolve()).as_posix(),
        sha256=sha256(path),
        size_bytes=path.stat().st_size,
        schema_version=row[0],
        recording_id=row[1],
        episode=row[2],
        tier=row[3],
        finished=row[4],
        recorded=row[5],
        machine=machine_line(machine[0]),
        variants=[variant for (variant,) in variants],
        valid_cells=valid[0],
        invalid_cells=valid[1],
    )


def machine_line(machine_json: str) -> str:
    """One line of session.machine: GPUs where there are any, processor, cores, memory."""
    machine = json.loads(machine_json)
    parts = [str(gpu) for gpu in machine.get("gpus") or []]
    if machine.get("cpu"):
        parts.append(str(machine["cpu"]))
    if machine.get("cores"):
        parts.append(f"{machine['cores']} cores")
    if machine.get("memory_bytes"):
        parts.append(f"{machine['memory_bytes'] / 2**30:.0f} GiB")
    return ", ".join(parts) or "unknown machine"


def _table(entry: Entry) -> str:
    # JSON's strings, integers, booleans and flat lists are TOML's as well.
    lines = [f"{key} = {json.dumps(value)}" for key, value in asdict(entry).items()]
    return "\n[[recording]]\n" + "\n".join(lines) + "\n"
