"""What can be said of the built site without a browser."""

import gzip
import hashlib
import re
from pathlib import Path
from urllib.parse import unquote, urljoin, urlparse

from tests.render.conftest import REPO

ELSEWHERE = re.compile(r"""(?:src|href|url)\s*[=(]\s*["']?\s*(?:https?:)?//""")


def html_files(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    for path in html_files(site):
        page = path.read_text(encoding="utf-8")
        for tag in re.findall(r"<(?:script|link|img|iframe|source|video|audio)\b[^>]*>", page):
            assert not ELSEWHERE.search(tag), (path, tag)
    for path in site.rglob("assets/css/*.css"):
        assert not ELSEWHERE.search(path.read_text(encoding="utf-8")), path


def test_no_page_has_a_script_in_its_content(site: Path) -> None:
    for path in html_files(site):
        page = path.read_text(encoding="utf-8")
        if "<article" in page:
            article = page[page.index("<article") : page.index("</article>")]
            assert "<script" not in article, path


def test_every_link_within_the_site_leads_somewhere(site: Path) -> None:
    base = "http://site/"
    ids = {
        path.relative_to(site).as_posix(): set(
            re.findall(r'\bid="?([^"\s>]+)', path.read_text(encoding="utf-8"))
        )
        for path in html_files(site)
    }
    for path in html_files(site):
        name = path.relative_to(site).as_posix()
        if name == "404.html":
            continue  # its links start at the root of the server
        page = path.read_text(encoding="utf-8")
        for link in re.findall(r'<a\b[^>]*?\bhref="?([^"\s>]+)', page):
            target = urlparse(urljoin(base + name.removesuffix("index.html"), link))
            if target.netloc != "site":
                continue
            file = unquote(target.path).lstrip("/")
            file = file + "index.html" if file == "" or file.endswith("/") else file
            assert (site / file).exists(), (name, link)
            if target.fragment and file in ids:
                assert unquote(target.fragment) in ids[file] | {"__comments"}, (name, link)


def test_ids_are_unique_on_a_page(site: Path, hostile_site: Path) -> None:
    for path in [*html_files(site), *html_files(hostile_site)]:
        page = path.read_text(encoding="utf-8")
        ids = re.findall(r'\sid="?([^"\s>]+)', page)
        assert len(ids) == len(set(ids)), (path, [i for i in ids if ids.count(i) > 1][:3])


def test_pages_are_light(site: Path) -> None:
    for path in html_files(site):
        assert len(gzip.compress(path.read_bytes())) < 120_000, path


def test_plotly_is_the_file_that_was_vendored(site: Path) -> None:
    folder = Path("assets") / "vendor"
    lines = (REPO / "docs" / folder / "SHA256SUMS").read_text(encoding="utf-8").split()
    digest, name = lines
    for base in (REPO / "docs", site):
        found = hashlib.sha256((base / folder / name).read_bytes()).hexdigest()
        assert found == digest
    assert name in (REPO / "docs" / "assets" / "js" / "charts.js").read_text(encoding="utf-8")
    size = len(gzip.compress((REPO / "docs" / folder / name).read_bytes()))
    assert size <= 500 * 1024


def test_plotly_may_not_upload(site: Path) -> None:
    script = (site / "assets" / "js" / "charts.js").read_text(encoding="utf-8")
    assert "showSendToCloud: false" in script and "displaylogo: false" in script
