"""The command line: python -m harness record | calibrate | doctor | engines | models | site |
check | compare.

It alone joins the rooms. A fault the user can act on is one line on standard error and exit code
1; the last line of `record` and of `compare` on standard output is one JSON object.
"""

import json
import logging
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from typer._click.exceptions import ClickException

from harness.errors import HarnessError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
Root = Annotated[Path, typer.Option(help="Folder that holds episodes/ and data/.")]
HERE = Path(__file__).parent.parent
err = Console(stderr=True)


@app.command()
def record(
    episode: Annotated[str, typer.Argument(help="Two digits, such as 00.")],
    tier: Annotated[str | None, typer.Option(help="cpu or gpu; default: this machine's.")] = None,
    engine: Annotated[str | None, typer.Option(help="One engine instead of all.")] = None,
    url: Annotated[
        str | None, typer.Option(help="An OpenAI-compatible server that runs already.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model name there, a hub id, or a local path.")
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port for the engine; 0 picks a free one.")
    ] = 0,
    load_machines: Annotated[
        int, typer.Option(min=0, help="Machines that run python -m harness.load --worker LISTEN.")
    ] = 0,
    listen: Annotated[str, typer.Option(help="HOST:PORT here that they join at.")] = "",
    root: Root = HERE,
) -> None:
    """Record an episode, or continue a recording that was interrupted."""
    from harness.engines import external
    from harness.load.launch import Remote
    from harness.record import record as run
    from harness.render import manifest
    from harness.session import Request

    server = external.server_url(url) if url else None
    if load_machines and not (listen and server):
        raise HarnessError("--load-machines needs --listen, and a --url that they reach too")
    remote = Remote(listen, load_machines) if load_machines else None
    asked = Request(root.resolve(), episode, tier, engine, server, model, port, remote)
    summary = run(asked, err, lambda path: manifest.update(asked.root, path))
    print(json.dumps(summary))


@app.command()
def calibrate(root: Root = HERE) -> None:
    """Find how much load this client can time on this machine, for the recordings to come."""
    from harness.calibrate import calibrate as run
    from harness.record import commit

    def say(line: str) -> None:
        err.print(line, highlight=False, markup=False, soft_wrap=True)

    path = run(root.resolve(), say, commit(root.resolve()))
    print(json.dumps(json.loads(path.read_text(encoding="utf-8"))["processes"]))


@app.command()
def doctor(root: Root = HERE) -> None:
    """Say what is there and what is missing, with the command that mends it."""
    from harness.doctor import examine

    findings = examine(root.resolve())
    for finding in findings:
        mark = {"ok": "[green]ok[/]     ", "warn": "[yellow]warn[/]   "}.get(
            finding.state, "[red]missing[/]"
        )
        err.print(
            f"{mark} [bold]{escape(finding.name)}[/]: {escape(finding.detail)}", highlight=False
        )
        if finding.mend:
            err.print(f"        mend: {finding.mend}", highlight=False, markup=False)
    print(json.dumps({f.name: f.state for f in findings}))


@app.command()
def engines(
    setup: Annotated[str | None, typer.Option(help="Install this engine's environment.")] = None,
    tier: Annotated[str | None, typer.Option(help="cpu or gpu; default: this machine's.")] = None,
    root: Root = HERE,
) -> None:
    """List the engines and their environments; install one with --setup NAME."""
    from harness.engines import ENGINES, environments, get
    from harness.telemetry import machine

    chosen = tier or machine.tier()
    if setup:
        environments.ensure(get(setup), chosen, root.resolve())
    for name, engine in ENGINES.items():
        print(f"{name:14} {environments.state(engine, chosen, root.resolve())}")


@app.command()
def models(
    name: Annotated[str | None, typer.Argument(help="One of them; default: all.")] = None,
    root: Root = HERE,
) -> None:
    """Make the models that scripts of harness/models make, where they are missing."""
    from harness.engines.models import PACKAGED, ensure_model
    from harness.models import BUILDERS

    for each in [name] if name else [PACKAGED, *BUILDERS]:
        made = ensure_model(each, root.resolve())
        print(f"{made.served_name:28} {(made.weight_bytes or 0) / 1e6:6,.0f} MB  {made.source}")


@app.command()
def site(root: Root = HERE, strict: bool = True) -> None:
    """Render the recordings as pages and build the site into site/."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    from harness.render import manifest, pages

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    with err.status("checking the recordings"):
        manifest.verify(root)
    with err.status("rendering the pages"):
        pages.build_pages(root)
    with err.status("building site/"):
        build(load_config(str(root / "mkdocs.yml"), strict=strict))


@app.command()
def check(
    refresh_views: Annotated[
        bool, typer.Option(help="Rewrite the views of recordings that lag behind views.sql.")
    ] = False,
    rejudge: Annotated[
        bool, typer.Option(help="Judge every cell of every recording anew, by its rows.")
    ] = False,
    root: Root = HERE,
) -> None:
    """Check declarations, recordings, their manifest, and the prose for typed figures."""
    from harness.check import run

    for line in run(root.resolve(), refresh_views, rejudge):
        print(line)


@app.command()
def compare(
    recording: Annotated[Path, typer.Argument(help="A recording, such as data/01/NAME.duckdb.")],
    a: Annotated[str, typer.Option(help="Cells by their keys: engine=vllm,in_flight=8.")],
    b: Annotated[str, typer.Option(help="The same; the level that one side names holds for both.")],
    metric: Annotated[str, typer.Option(help="Such as ttft, tpot, output_tok_per_s.")],
    statistic: Annotated[str, typer.Option(help="mean, or a percentile such as p90.")] = "p50",
) -> None:
    """Compare two choices of cells: the proof of equal work, the ratio, its interval."""
    from harness.analysis import cells, compare
    from harness.recording.store import connect

    with connect(recording) as con:
        found = compare.compare(con, cells.parse(a), cells.parse(b), metric, statistic)
    for row in found.checks:
        print(f"{'equal  ' if row.equal else 'differs'} {row.check}: {row.a} | {row.b}")
    for pair in found.ratios:
        values = f"{pair.a:.4g} / {pair.b:.4g} {found.unit} = {pair.ratio:.3f}"
        print(f"{pair.place}: {values} ({pair.samples} values)")
    print(found.sentence)
    print(json.dumps(asdict(found)))


def main() -> None:
    for sign in (signal.SIGTERM, signal.SIGHUP):  # end as Ctrl-C does: the engine is stopped
        signal.signal(sign, signal.default_int_handler)
    try:
        code = app(standalone_mode=False)
    except HarnessError as error:
        code = _fail(str(error))
    except ClickException as error:
        error.show()
        code = error.exit_code
    except OSError as error:
        code = _fail(f"{error.filename or 'the system'}: {error.strerror or error}")
    if code == 130:
        err.print("stopped; finished cells are kept, the same command continues")
    sys.exit(code or 0)


def _fail(message: str) -> int:
    err.print(f"[red]error:[/] {escape(message)}", highlight=False, soft_wrap=True)
    return 1
