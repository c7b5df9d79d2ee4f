"""The built site, once a session, and a browser to look at it."""

import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from harness.render import pages
from tests.render.conftest import REPO, checkout


def build(root: Path) -> Path:
    """Generates the pages of a checkout and builds its site, strictly."""
    pages.build_pages(root)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"],
        cwd=root,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    return root / "site"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of this repository, from its own recordings."""
    root = tmp_path_factory.mktemp("repo")
    for folder in ("docs", "episodes", "lessons", "data"):
        if (REPO / folder).exists():
            shutil.copytree(REPO / folder, root / folder)
    for path in (root / "data").rglob("*.partial.duckdb*"):
        path.unlink()  # a recording that is being made just now
    shutil.copy(REPO / "mkdocs.yml", root)
    return build(root)


@pytest.fixture(scope="session")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site whose one recording has markup in every text."""
    return build(checkout(tmp_path_factory.mktemp("hostile"), hostile=True))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def serve(folder: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    yield from serve(site)


@pytest.fixture(scope="session")
def hostile_address(hostile_site: Path) -> Iterator[str]:
    yield from serve(hostile_site)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = shutil.which("chromium")
    assert found, "Chromium is missing: apt-get install chromium (`make test` does it as root)"
    with sync_playwright() as playwright:
        # a container has no user namespaces for Chromium's own sandbox
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()
