"""The pages as a reader meets them: both schemes, two widths, by keyboard, with scripts off."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, get_args

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request

pytestmark = pytest.mark.browser

PAGES = [
    "",
    "episodes/",
    "episodes/00-warm-up/",
    "episodes/01-measure-what-matters/",
    "episodes/02-equal-work-runtime-baseline/",
    "episodes/03-prefix-reuse/",
    "episodes/04-batching-scheduling-and-mixed-traffic/",
    "episodes/07-parallelism-within-one-node/",
    "episodes/15-saturation-slo-and-cost/",
    "lessons/",
    "method/",
    "reference/data-dictionary/",
    "reference/how-benchmarks-lie/",
    "reference/peers/",
    "reference/rejected-runs/",
    "glossary/",
]
Scheme = Literal["light", "dark"]
SCHEMES = get_args(Scheme)
WIDTHS = [1280, 390]
# What axe finds hangs on the scheme (colours) or on the width (what scrolls), not on both at once.
FOR_AXE = [(1280, "dark"), (390, "light")]


@contextmanager
def opened(
    browser: Browser,
    address: str,
    path: str,
    scheme: Scheme = "light",
    width: int = 1280,
    **more: Any,
) -> Iterator[Page]:
    """A page; leaving it fails on a console message, an error, or a request to another host."""
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, **more
    )
    page, faults = context.new_page(), []
    page.on(
        "console",
        lambda said: faults.append(said.text) if said.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "request",
        lambda sent: (
            None if sent.url.startswith((address, "data:", "blob:")) else faults.append(sent.url)
        ),
    )
    page.on("response", lambda got: faults.append(got.url) if got.status >= 400 else None)
    page.goto(address + path)
    yield page
    context.close()
    assert faults == []


def show_all_figures(page: Page) -> int:
    """Scrolls to every figure and waits until Plotly has drawn it."""
    plots = page.locator(".tbt-plot")
    for index in range(plots.count()):
        plots.nth(index).scroll_into_view_if_needed()
        page.wait_for_selector(f".tbt-plot.tbt-live .main-svg >> nth={index}", timeout=20_000)
        page.wait_for_function(
            "i => document.querySelectorAll('.tbt-plot')[i].classList.contains('tbt-live')",
            arg=index,
        )
    return plots.count()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_whole(
    browser: Browser, address: str, path: str, width: int, scheme: Scheme
) -> None:
    with opened(browser, address, path, scheme, width) as page:
        page.wait_for_function("document.body.dataset.mdColorScheme !== undefined")
        wanted = "slate" if scheme == "dark" else "default"
        assert page.evaluate("document.body.dataset.mdColorScheme") == wanted
        show_all_figures(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate("document.querySelectorAll('article details').forEach(d => d.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if (width, scheme) in FOR_AXE:
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_figures_come_alive_without_moving_the_page(
    browser: Browser, hostile_address: str, width: int, scheme: Scheme
) -> None:
    path = "episodes/00-warm-up/"
    with opened(browser, hostile_address, path, scheme, width) as page:
        before = page.evaluate("document.documentElement.scrollHeight")
        assert show_all_figures(page) == 2
        assert page.evaluate("document.documentElement.scrollHeight") == before
        assert page.locator(".modebar-btn[data-title*='loud']").count() == 0
        assert page.evaluate("window.pwned") is None
        page.evaluate("document.querySelectorAll('article details').forEach(d => d.open = true)")
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


def test_recorded_markup_stays_text(browser: Browser, hostile_address: str) -> None:
    for path in ("", "episodes/", "episodes/00-warm-up/"):
        with opened(browser, hostile_address, path) as page:
            assert page.evaluate("window.pwned") is None
            assert page.locator("article img").count() == 0
            assert page.locator("article a[href^='javascript']").count() == 0
            if path.endswith("warm-up/"):
                shown = page.locator("article").inner_text()
                assert "<script>window.pwned=1</script>" in shown and "{{ 7*7 }}" in shown


def test_plotly_follows_the_scheme(browser: Browser, hostile_address: str) -> None:
    with opened(browser, hostile_address, "episodes/00-warm-up/") as page:
        show_all_figures(page)
        line = "getComputedStyle(document.querySelector('.js-line')).stroke"
        light = page.evaluate(line)
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(f"{line} !== {light!r}")
        page.emulate_media(color_scheme="light")
        page.wait_for_function(f"{line} === {light!r}")


def _note(asked: list[str], sent: Request) -> None:
    asked.append(sent.url)


def test_plotly_is_loaded_only_when_a_figure_is_near(
    browser: Browser, hostile_address: str
) -> None:
    for path, wanted in (("method/", 0), ("episodes/00-warm-up/", 1)):
        with opened(browser, hostile_address, path) as page:
            asked: list[str] = []
            page.on("request", partial(_note, asked))
            page.reload()
            show_all_figures(page)
            assert sum("plotly" in url for url in asked) == wanted


def test_the_picture_stays_if_plotly_fails(browser: Browser, hostile_address: str) -> None:
    page = browser.new_page()
    page.route("**/plotly-*.js", lambda route: route.abort())
    with page.expect_console_message(lambda said: "static picture stays" in said.text):
        page.goto(hostile_address + "episodes/00-warm-up/")
        page.locator(".tbt-wide svg").first.scroll_into_view_if_needed()
    assert page.locator(".tbt-wide svg").first.is_visible()
    page.close()


def test_without_scripts_picture_and_rows_are_there(browser: Browser, hostile_address: str) -> None:
    for width, shown in ((1280, ".tbt-wide"), (390, ".tbt-narrow")):
        with opened(
            browser,
            hostile_address,
            "episodes/00-warm-up/",
            width=width,
            java_script_enabled=False,
        ) as page:
            assert page.locator(f"{shown} svg").first.is_visible()
            page.locator("figure summary").first.click()
            assert page.locator("figure td").first.is_visible()


def test_the_keyboard_reaches_palette_and_disclosures(
    browser: Browser, hostile_address: str
) -> None:
    with opened(browser, hostile_address, "episodes/00-warm-up/") as page:
        palette = False
        for _ in range(80):
            page.keyboard.press("Tab")
            palette |= page.evaluate("document.activeElement.matches('input.md-option')")
            if page.evaluate("document.activeElement.matches('figure summary')"):
                break
        assert palette
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.parentElement.open") is True


def test_a_link_to_a_number_opens_its_query(browser: Browser, hostile_address: str) -> None:
    with opened(browser, hostile_address, "episodes/00-warm-up/") as page:
        page.locator("a.tbt-n[href='#source-cpu-ttft_one']").click()
        page.wait_for_selector("details#source-cpu-ttft_one[open]")


def test_clicking_through_keeps_figures_alive(browser: Browser, hostile_address: str) -> None:
    with opened(browser, hostile_address, "") as page:
        page.get_by_role("link", name="Read the episodes").click()
        page.get_by_role("link", name="00 Warm-up").click()
        page.wait_for_url("**/episodes/00-warm-up/")
        assert show_all_figures(page) == 2
        page.go_back()
        page.go_forward()
        assert show_all_figures(page) == 2


def test_search_finds_a_page(browser: Browser, address: str) -> None:
    with opened(browser, address, "") as page:
        page.locator("input.md-search__input").fill("coordinated omission")
        page.wait_for_selector(".md-search-result__link")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_keyboard_moves_a_model(browser: Browser, hostile_address: str, width: int) -> None:
    with opened(browser, hostile_address, "episodes/00-warm-up/", width=width) as page:
        answer = page.locator(".tbt-answer")
        assert "102.4 ms" in answer.inner_text() and answer.get_attribute("aria-live") == "polite"
        slider = page.get_by_role("slider", name="Prompt")
        slider.focus()
        page.keyboard.press("ArrowRight")
        assert slider.get_attribute("aria-valuetext") == "2,048 tokens"
        assert "409.6 ms" in answer.inner_text()
        page.get_by_role("combobox", name="Engine").focus()
        page.keyboard.press("ArrowDown")
        assert "614.4 ms" in answer.inner_text()
        assert page.locator(".tbt-try table").first.is_hidden()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_model_without_scripts_is_a_table(browser: Browser, hostile_address: str) -> None:
    path = "episodes/00-warm-up/"
    for width in WIDTHS:
        with opened(browser, hostile_address, path, width=width, java_script_enabled=False) as page:
            assert page.locator(".tbt-try table").first.is_visible()
            assert page.locator(".tbt-try fieldset").is_hidden()
            assert page.locator(".tbt-answer").is_hidden()


def test_the_keyboard_moves_a_slider_and_the_figure_follows(browser: Browser, address: str) -> None:
    with opened(browser, address, "episodes/01-measure-what-matters/") as page:
        plot = page.locator(".tbt-slider + .tbt-plot").first
        plot.scroll_into_view_if_needed()
        slider = page.locator(".tbt-slider input").first
        slider.wait_for()
        curve = "p => p.querySelector('.main-svg .scatterlayer').innerHTML"
        before, named = plot.evaluate(curve), page.locator(".tbt-slider output").first.inner_text()
        slider.focus()
        page.keyboard.press("ArrowLeft")
        page.wait_for_function(
            f"before => ({curve})(document.querySelector('.tbt-slider + .tbt-plot')) !== before",
            arg=before,
        )
        now = page.locator(".tbt-slider output").first.inner_text()
        assert now != named and slider.get_attribute("aria-valuetext") == now
