"""The rounds of a recording: in each repeat its cells, engine by engine, and then its jobs; after
the last one the attempts. What is in already is left out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harness.attempts import run_attempt
from harness.cell import Target, run_cell
from harness.engines import external
from harness.errors import HarnessError
from harness.experiment import Attempt, Job, Tier
from harness.jobs_run import run_job
from harness.rates import rate_per_s
from harness.recording.store import Recording
from harness.schedule import Cell, jobs
from harness.session import Session, commit_cell, engine_run, probe
from harness.worklist import Worklist
from harness.workload import word_ids


@dataclass(frozen=True, slots=True)
class Todo:
    """What a recording lacks. total_cells, total: of what it will have."""

    cells: tuple[Cell, ...]
    jobs: tuple[tuple[int, Job], ...]  # with their repeat
    attempts: tuple[Attempt, ...]
    total_cells: int
    total: int

    @property
    def count(self) -> int:
        return len(self.cells) + len(self.jobs) + len(self.attempts)


def missing(recording: Recording, tier: Tier, planned: Sequence[Cell]) -> Todo:
    """The planned cells, and the tier's jobs and attempts, that are not in."""
    positions = recording.done()
    ran = set(recording.con.execute("SELECT repeat, name FROM job").fetchall())
    made = {name for (name,) in recording.con.execute("SELECT name FROM attempt").fetchall()}
    each_job = [(r, job) for r in range(1, tier.repeats + 1) for job in jobs(tier, r)]
    return Todo(
        cells=tuple(cell for cell in planned if cell.position not in positions),
        jobs=tuple((r, job) for r, job in each_job if (r, job.name) not in ran),
        attempts=tuple(each for each in tier.attempts if each.name not in made),
        total_cells=len(planned),
        total=len(planned) + len(each_job) + len(tier.attempts),
    )


def run(session: Session, todo: Todo, console: Console) -> None:
    """Does all of it. Raises HarnessError where an engine of a cell fails."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("", total=todo.total, completed=todo.total - todo.count)

        def begin(what: str) -> None:
            progress.update(task, description=what)

        def done(line: str) -> None:
            progress.advance(task)
            if not console.is_terminal:  # no bar is drawn: a line each instead
                console.print(line, soft_wrap=True, markup=False, highlight=False)

        for repeat in range(1, session.tier.repeats + 1):
            cells = [cell for cell in todo.cells if cell.repeat == repeat]
            for name, group in groupby(cells, key=lambda cell: cell.variant):
                begin(f"repeat {repeat} · {name} · starting")
                _run_variant(session, name, list(group), todo.total_cells, begin, done)
            for job in (job for of, job in todo.jobs if of == repeat):
                begin(f"repeat {repeat} · job {job.name}")
                fault = run_job(session, job, repeat)
                done(f"job {job.name}, repeat {repeat}: {fault or 'done'}")
        for attempt in todo.attempts:
            begin(f"attempt {attempt.name}")
            done(f"attempt {attempt.name}: {run_attempt(session, attempt)}")


Say = Callable[[str], None]


def _run_variant(
    session: Session, name: str, cells: Sequence[Cell], total: int, begin: Say, done: Say
) -> None:
    """The cells of one variant in one repeat, on one start of its engine."""
    variant = session.tier.variant(name)
    with engine_run(session, name, variant) as (run_id, target):
        if session.tier.probe and not variant.model and not session.asked.url:
            probe(session, run_id, target)
        for cell in cells:
            what = f"{name} {cell.level}, repeat {cell.repeat}"
            begin(what)
            if cell.level.sweep.reset_cache:
                external.reset_cache(target.engine, target.base_url)
            work, remote = _worklist(session, target, cell), session.asked.remote
            with run_cell(work, target, remote) as result:
                reasons = commit_cell(session, run_id, result)
            verdict = "; ".join(["INVALID", *reasons]) if reasons else "VALID"
            done(f"cell {cell.position} of {total}: {what}: {verdict}")


def _worklist(session: Session, target: Target, cell: Cell) -> Worklist:
    """The cell's requests. Raises HarnessError where the level can't be reached."""
    level, added = cell.level, 0
    tokenizer = session.models[session.tier.variant(cell.variant).model].tokenizer_path
    if tokenizer is None or level.sweep.endpoint == "chat":
        added = external.added_tokens(
            target.engine, target.base_url, target.served_name, level.sweep.endpoint
        )
    shortest = min([level.prompt_tokens, *(prompt for prompt, _, _ in level.sweep.mix)])
    if shortest <= added:
        raise HarnessError(
            f"{target.engine.name}: adds {added} tokens to every prompt at "
            f"{level.sweep.endpoint}, so a prompt of {shortest} can't be sent"
        )
    return Worklist(
        cell=cell,
        tier=session.tier,
        seeds=session.seeds,
        rate_per_s=rate_per_s(session.recording, session.tier, cell),
        added_tokens=added,
        words=word_ids(tokenizer) if tokenizer else None,
        folder=session.experiment.path.parent,
    )
