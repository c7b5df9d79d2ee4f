"""Recordings and templates -> the generated part of docs/. MkDocs then builds the site from docs/.

Generated, and not in git: docs/episodes, docs/lessons, docs/reference, docs/assets/data, and
.cache/site for what hand-written pages include. MkDocs itself runs no code of ours (no hooks), so
the same pages build under any drop-in of it. Command: python -m harness site
"""

from dataclasses import dataclass, field
from pathlib import Path

from harness.render import (
    dictionary,
    figure,
    manifest,
    prose_numbers,
    queries,
    registry,
    rejected,
    source,
    svg,
    theme,
)
from harness.render.cards import page as cards
from harness.render.escape import text
from harness.render.front_matter import front_matter
from harness.render.prose import Prose
from harness.render.registry import Chapter

GENERATED = ("docs/episodes", "docs/lessons", "docs/reference", "docs/assets/data", ".cache/site")
TIERS = ("cpu", "gpu")


@dataclass(slots=True)
class Output:
    """Files made in this build; writing leaves unchanged files alone and removes what is stale."""

    root: Path
    files: dict[str, str] = field(default_factory=dict)

    def write(self) -> None:
        for name, content in self.files.items():
            path = self.root / name
            if not path.exists() or path.read_text(encoding="utf-8") != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")
        for folder in GENERATED:
            for path in (self.root / folder).rglob("*"):
                if path.is_file() and path.relative_to(self.root).as_posix() not in self.files:
                    path.unlink()


def build_pages(root: Path) -> None:
    """Generates every page. Raises HarnessError, naming the file, on anything that is not right."""
    prose_numbers.check(root)
    entries = manifest.verify(root)
    kept = queries.Cache(root)
    output = Output(root)
    home = '<p class="tbt-missing">No episode has been recorded yet.</p>'
    chapters = registry.read(root)
    recorded: dict[str, tuple[Chapter, dict[str, source.Source]]] = {}
    for chapter in chapters:
        prose = Prose(root, chapter, _sources(root, chapter, entries, kept), kept)
        recorded[chapter.number] = chapter, prose.sources
        output.files[f"docs/episodes/{chapter.name}.md"] = _episode(prose)
        if chapter.picture and prose.sources and (prose.folder / "charts.py").exists():
            home = _home_picture(prose)
            output.files |= _readme_pictures(prose)
        output.files |= {f"docs/assets/data/{name}.json": data for name, data in prose.data.items()}
    for chapter in registry.demonstrations(root):
        prose = Prose(root, chapter, _emulated(root, chapter, entries, kept), kept)
        recorded[chapter.number] = chapter, prose.sources
        output.files[f"docs/reference/{chapter.slug}.md"] = _demonstration(prose)
        output.files |= {f"docs/assets/data/{name}.json": data for name, data in prose.data.items()}
    output.files["docs/reference/rejected-runs.md"] = _rejected(root, chapters, entries, kept)
    output.files["docs/episodes/index.md"] = _episode_index(root, chapters, entries)
    output.files["docs/reference/data-dictionary.md"] = dictionary.page()
    output.files |= cards.build(root, chapters, recorded, kept, _linkable(root, output))
    output.files[".cache/site/home-picture.html"] = home.strip() + "\n"
    output.write()
    kept.prune()


def _linkable(root: Path, output: Output) -> dict[str, str]:
    """Markdown of the pages that have headings to link to, by its name under docs/."""
    written = {
        path.relative_to(root / "docs").as_posix(): path.read_text(encoding="utf-8")
        for path in (root / "docs").glob("*.md")
    }
    made = {name.removeprefix("docs/"): page for name, page in output.files.items()}
    return written | {name: page for name, page in made.items() if name.endswith(".md")}


def _sources(
    root: Path, chapter: Chapter, entries: list[manifest.Entry], kept: queries.Cache
) -> dict[str, source.Source]:
    """The newest finished recording of each tier that has one."""
    found = {}
    for tier in TIERS:
        entry = manifest.newest(entries, chapter.number, tier)
        if entry is not None:
            found[tier] = _source(root, entry, kept)
    return found


def _source(root: Path, entry: manifest.Entry, kept: queries.Cache) -> source.Source:
    key, cached = kept.get("source", queries.code_hash(), entry.file, entry.sha256)
    found: source.Source = cached or kept.put(key, source.read(root, entry))
    return found


def _emulated(
    root: Path, chapter: Chapter, entries: list[manifest.Entry], kept: queries.Cache
) -> dict[str, source.Source]:
    """The newest recording of a demonstration, under the label that all its figures carry."""
    entry = manifest.newest(entries, chapter.number, "cpu")
    return {} if entry is None else {"emulator": _source(root, entry, kept)}


def _demonstration(prose: Prose) -> str:
    """A page whose recordings are the emulator's. It says so before anything else."""
    chapter = prose.chapter
    parts = [
        front_matter(chapter.title, chapter.summary),
        f"# {chapter.title}\n",
        f'<p class="tbt-lead">{text(chapter.summary)}</p>\n',
    ]
    if prose.sources:
        parts += [_states(prose, ("emulator",)), prose.render()]
    else:
        parts.append(f"Not recorded yet. To record: {_how_to_record(prose.root, chapter)}\n")
    return "\n".join(parts)


def _rejected(
    root: Path, chapters: list[Chapter], entries: list[manifest.Entry], kept: queries.Cache
) -> str:
    """Of every finished recording of a page, whether or not the page shows that recording."""
    places = {c.number: (f"{c.number} · {c.title}", f"../../episodes/{c.name}/") for c in chapters}
    places |= {c.number: (c.title, f"../{c.slug}/") for c in registry.demonstrations(root)}
    shown = []
    for entry in entries:
        if entry.finished and entry.episode in places:
            title, link = places[entry.episode]
            found = _source(root, entry, kept)
            shown.append((f"{title}, {found.label}, {entry.recorded[:10]}", link, found))
    summary = "Every cell that was judged INVALID, with its reasons and the evidence."
    return front_matter("Rejected runs", summary) + rejected.page(shown)


def _episode(prose: Prose) -> str:
    chapter = prose.chapter
    title = f"{chapter.number} · {chapter.title}"
    parts = [
        front_matter(title, chapter.summary),
        f"# {title}\n",
        f'<p class="tbt-lead">{text(chapter.summary)}</p>\n',
        _states(prose),
    ]
    written = (prose.folder / "episode.md").exists()
    if written:
        prose.check()
    if written and prose.sources:
        parts.append(prose.episode())
    elif written:
        parts.append(
            "This episode reads its numbers from a recording. Its text appears here once there is"
            " one.\n"
        )
    else:
        parts.append("This episode has not been written yet.\n")
    return "\n".join(parts)


def _states(prose: Prose, tiers: tuple[str, ...] = TIERS) -> str:
    """Of each tier: recorded when and on what, or the command that records it."""
    items = []
    for tier in tiers:
        if tier not in prose.sources:
            items.append(
                f"<dt>{tier}</dt><dd>Not recorded yet. To record: "
                f"{_how_to_record(prose.root, prose.chapter)}</dd>"
            )
            continue
        entry = prose.sources[tier].entry
        items.append(
            f"<dt>{tier}</dt><dd>Recorded {text(entry.recorded)} UTC on {text(entry.machine)}."
            f" {entry.valid_cells} cells VALID, {entry.invalid_cells} INVALID."
            f" <code>{text(entry.file)}</code></dd>"
        )
    return f'<dl class="tbt-states">{"".join(items)}</dl>\n'


def _how_to_record(root: Path, chapter: Chapter) -> str:
    """The command; for an episode that is not declared yet it is one to come."""
    declared = (root / "episodes" / chapter.name / "experiment.toml").exists()
    command = f"<code>{source.record_command(chapter.number)}</code>"
    known = declared or chapter in registry.demonstrations(root)
    return command if known else f"{command}, once its experiment is declared"


def _home_picture(prose: Prose) -> str:
    chapter = prose.chapter
    link = f'<a href="episodes/{chapter.name}/">Episode {chapter.number}: {text(chapter.title)}</a>'
    title = prose.chart_title(chapter.picture)
    return prose.figure(chapter.picture, caption=f"{text(title)} {link}.")


def _readme_pictures(prose: Prose) -> dict[str, str]:
    """The same picture as files of their own, one a scheme, for the README. These are in git."""
    drawn = prose.drawn(prose.chapter.picture)
    return {
        f"docs/assets/picture-{scheme}.svg": svg.standalone(drawn, theme.css_colours(scheme))
        for scheme in ("light", "dark")
    }


def _episode_index(root: Path, chapters: list[Chapter], entries: list[manifest.Entry]) -> str:
    recorded = {e.episode for e in entries if e.finished}
    rows = "\n".join(_index_row(root, chapter, entries) for chapter in chapters)
    return (
        front_matter("Episodes", "The episodes of the course and what has been recorded of each.")
        + "# Episodes\n\n"
        f"{len(chapters)} episodes, in the order of the course. An episode is recorded on a machine"
        " tier: `cpu` is any two-core machine with a small model, `gpu` is one NVIDIA GPU with an"
        f" 8B-class model. Recorded so far on at least one tier: {len(recorded)}.\n\n"
        f'<ol class="tbt-episodes">\n{rows}\n</ol>\n'
    )


def _index_row(root: Path, chapter: Chapter, entries: list[manifest.Entry]) -> str:
    states = []
    for tier in TIERS:
        entry = manifest.newest(entries, chapter.number, tier)
        if entry is None:
            state = f"not recorded yet: {_how_to_record(root, chapter)}"
            states.append(f'<li><span class="tbt-kind">{tier}</span> {state}</li>')
        else:
            state = f"{entry.recorded[:10]}, {entry.valid_cells} cells VALID"
            state += f", {entry.invalid_cells} INVALID" if entry.invalid_cells else ""
            states.append(f"<li>{figure.badges(('recorded',), tier)} {text(state)}</li>")
    return (
        f'<li><h2 id="{chapter.name}"><a href="{chapter.name}/"><span class="tbt-number">'
        f"{chapter.number}</span> {text(chapter.title)}</a></h2><p>{text(chapter.summary)}</p>"
        f'<ul class="tbt-tiers">{"".join(states)}</ul></li>'
    )
