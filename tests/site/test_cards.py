"""The lesson cards as a reader uses them: by mouse, by keyboard, with scripts off, in print."""

import gzip
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from harness.render.cards import card as cards
from tests.render.conftest import REPO
from tests.site.test_browser import FOR_AXE, Scheme, opened

pytestmark = pytest.mark.browser

CARDS = cards.read_all(REPO)
OF_KIND = {card.kind: card for card in reversed(CARDS)}  # the first of each
BY_KIND = pytest.mark.parametrize("kind", list(OF_KIND))


def questions(page: Page) -> list[Locator]:
    all_of_them = page.locator(".tbt-card .tbt-question")
    ids = all_of_them.evaluate_all("all => all.map(each => each.id)")
    return [page.locator(f"#{ident}") for ident in ids]


def give(question: Locator, right: bool) -> None:
    """Fills a question in: by its key, or by something else."""
    kind = question.get_attribute("data-type")
    key = (question.get_attribute("data-key") or "").split()
    if kind in ("single", "multi", "line"):
        every = question.locator(".tbt-ask input")
        wrong = [value for value in map(str, range(every.count())) if value not in key][:1]
        for value in key if right else wrong:
            question.locator(f".tbt-ask input[value='{value}']").check()
        if kind == "multi" and right:
            for value in wrong:
                question.locator(f".tbt-ask input[value='{value}']").uncheck()
    elif kind == "order":
        places = key if right else [*key[1:], key[0]]
        for select, place in zip(question.locator(".tbt-ask select").all(), places, strict=True):
            select.select_option(place)
    elif kind == "number":
        low = float(question.get_attribute("data-low") or 0)
        high = float(question.get_attribute("data-high") or 0)
        question.locator(".tbt-number input").fill(f"{(low * high) ** 0.5 if right else 50 * high}")
    elif kind == "sketch":
        points = question.evaluate("each => JSON.parse(each.dataset.points)")
        for entry, (_, y, *_) in zip(
            question.locator(".tbt-entries input").all(), points, strict=True
        ):
            entry.fill(f"{y if right else 40 * y}")
    else:
        question.locator("textarea").fill("A router, a cap, a queue with an end.")


def be_sure(question: Locator) -> None:
    if question.locator(".tbt-sure").count():
        question.locator(".tbt-sure input").last.check()


def test_every_kind_has_a_card() -> None:
    assert set(OF_KIND) == set(cards.KINDS)


@BY_KIND
@pytest.mark.parametrize("right", [True, False])
def test_a_card_by_mouse(browser: Browser, address: str, kind: str, right: bool) -> None:
    card = OF_KIND[kind]
    with opened(browser, address, f"lessons/{card.slug}/") as page:
        assert page.locator(".tbt-question:visible").count() == 1
        for place, question in enumerate(questions(page)):
            expect(question).to_be_visible()
            assert question.locator(".tbt-why:visible, .tbt-explain:visible").count() == 0
            check = question.get_by_role("button", name="Check")
            check.click()
            assert re.match("Pick|Write|Give", question.locator(".tbt-verdict").inner_text())
            give(question, right)
            be_sure(question)
            check.click()
            if card.questions[place].type == "text":
                for tick in question.locator(".tbt-rubric input").all():
                    tick.check()
            elif not right:
                expect(question.locator(".tbt-verdict")).to_contain_text("✗")
                assert question.locator(".tbt-explain:visible").count() == 0
                assert question.locator(".tbt-right:visible").count() == 0  # the key stays hidden
                question.get_by_role("button", name="Give up and see").click()
            else:
                expect(question.locator(".tbt-verdict")).to_contain_text("✓ Right")
            expect(question.locator(".tbt-explain")).to_be_visible()
            question.locator("[type=submit]").click()
        expect(page.locator(".tbt-end")).to_be_visible()
        again = page.locator(".tbt-again > button")
        assert again.count() == (0 if right else 1)
        if not right:
            again.click()
            missed = page.locator(".tbt-again .tbt-question").first
            give(missed, True)
            be_sure(missed)
            missed.get_by_role("button", name="Check").click()
            expect(missed.locator(".tbt-verdict")).to_contain_text("✓ Right")
        page.goto(f"{address}lessons/")
        row = page.locator(f"li[data-slug='{card.slug}']")
        expect(row.locator(".tbt-progress")).to_contain_text(f"{len(card.questions)} of")


def type_in(page: Page, question: Locator) -> None:
    """The right answer, by keys alone; a number that stands there takes no letter after it."""
    question.locator("form input, form select, form textarea").first.focus()
    key = (question.get_attribute("data-key") or "").split()
    kind = question.get_attribute("data-type")
    if kind in ("single", "line"):
        page.keyboard.press("Space")
        for _ in range(int(key[0])):
            page.keyboard.press("ArrowDown")
    elif kind == "multi":
        for place in range(question.locator(".tbt-ask input").count()):
            if str(place) in key:
                page.keyboard.press("Space")
            page.keyboard.press("Tab")
    elif kind == "order":
        for digit in key:
            page.keyboard.type(digit)
            page.keyboard.press("Tab")
    else:
        give(question, True)
    question.locator(".tbt-buttons button").first.focus()


@BY_KIND
def test_a_card_by_keyboard(browser: Browser, address: str, kind: str) -> None:
    """Each question is answered and left by keys alone; single letters turn no page."""
    path = f"lessons/{OF_KIND[kind].slug}/"
    with opened(browser, address, path) as page:
        for question in questions(page):
            type_in(page, question)
            for letter in "npfs.,/":
                page.keyboard.press(letter)
            assert page.url == address + path
            assert page.evaluate("document.querySelector('#__search').checked") is False
            if question.locator(".tbt-sure:visible").count():
                question.locator(".tbt-sure input").nth(1).focus()
                page.keyboard.press("Space")
            button = question.locator("[type=submit]")
            button.focus()
            page.keyboard.press("Enter")
            expect(question.locator(".tbt-explain")).to_be_visible()
            assert button.evaluate("each => each === document.activeElement")
            page.keyboard.press("Enter")
            assert page.evaluate("document.activeElement.tagName") == "H2"
        expect(page.locator(".tbt-end")).to_be_visible()


@BY_KIND
def test_a_card_with_scripts_off(browser: Browser, address: str, kind: str) -> None:
    card = OF_KIND[kind]
    with opened(browser, address, f"lessons/{card.slug}/", java_script_enabled=False) as page:
        for question in card.questions:
            shown = page.locator(f"#{question.id}")
            assert shown.locator(".tbt-ask > legend").is_visible()
            assert shown.locator(".tbt-buttons").is_hidden()
            assert shown.locator(".tbt-explain").is_hidden()
            shown.locator(".tbt-key > summary").click()
            assert shown.locator(".tbt-explain").is_visible()


@pytest.mark.parametrize(("width", "scheme"), FOR_AXE)
@pytest.mark.parametrize("slug", [*(card.slug for card in CARDS), "questions", "answers"])
def test_a_card_is_accessible(
    browser: Browser, address: str, slug: str, width: int, scheme: Scheme
) -> None:
    """All of it: every question answered, every disclosure open."""
    with opened(browser, address, f"lessons/{slug}/", scheme, width) as page:
        for place, question in enumerate(questions(page)):
            give(question, place % 2 == 0)
            be_sure(question)
            question.locator("[type=submit]").click()
            if question.locator("button:has-text('Give up')").is_visible():
                question.locator("button:has-text('Give up')").click()
            question.locator("[type=submit]").click()
        page.evaluate("document.querySelectorAll('article details').forEach(d => d.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


def test_numbers_are_read_as_people_write_them(browser: Browser, address: str) -> None:
    from harness.render.cards.grading import units

    cases = [
        ("1.2k", "tokens", 1200), ("1,200 tokens", "tokens", 1200), ("1 200", "tokens", 1200),
        ("2e6", "tokens", 2e6), ("0,5", "tokens", 0.5), ("≈ 3 million", "tokens", 3e6),
        ("1.2 k tokens", "tokens", 1200), ("3.5 GB", "bytes", 3.5e9), ("1 GiB", "bytes", 2.0**30),
        ("46 kB", "bytes", 46_000), ("0.2 s", "ms", 200), ("85%", "%", 85), ("-3", "ms", -3),
        ("three", "ms", None), ("3 GB", "ms", None), ("1.2.3", "ms", None), ("", "ms", None),
    ]  # fmt: skip
    with opened(browser, address, "lessons/") as page:
        read = page.evaluate(
            """async (cases) => {
              const { parse } = await import(new URL("../assets/js/grade.js", location.href));
              return cases.map(([said, units]) => parse(said, units));
            }""",
            [[said, units(unit)] for said, unit, _ in cases],
        )
    for (said, unit, wanted), got in zip(cases, read, strict=True):
        if wanted is None:
            assert got != got, said  # NaN
        else:
            assert got == pytest.approx(wanted), (said, unit)


def test_a_missed_question_comes_back_on_its_day(browser: Browser, address: str) -> None:
    card = OF_KIND["Debug"]
    with opened(browser, address, f"lessons/{card.slug}/") as page:
        days = [1, 3, 7, 21, 60]
        question = page.locator(".tbt-question").first
        give(question, False)
        be_sure(question)
        question.get_by_role("button", name="Check").click()
        question.get_by_role("button", name="Give up and see").click()
        entry = f"JSON.parse(localStorage['tbt:1:{card.slug}:{card.questions[0].id}'])"
        today = page.evaluate(
            "Math.floor((Date.now() - new Date().getTimezoneOffset() * 6e4) / 864e5)"
        )
        for step, day in enumerate(days):
            assert (
                page.evaluate(entry)["due"] == today + day and page.evaluate(entry)["step"] == step
            )
            page.evaluate(
                f"localStorage['tbt:1:{card.slug}:{card.questions[0].id}'] ="
                f" JSON.stringify({{...{entry}, due: {today}}})"
            )
            page.goto(f"{address}lessons/")
            expect(page.locator(".tbt-due a")).to_have_count(1)
            page.locator(".tbt-due a").click()
            question = page.locator(".tbt-question").first
            give(question, True)
            be_sure(question)
            question.get_by_role("button", name="Check").click()
        assert page.evaluate(entry)["step"] == -1  # learnt
        page.goto(f"{address}lessons/")
        with page.expect_download() as saved:
            page.get_by_role("button", name="Export").click()
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Forget all").click()
        assert page.evaluate("localStorage.length") == page.evaluate(
            "Object.keys(localStorage).filter(key => !key.startsWith('tbt:')).length"
        )
        page.locator(".tbt-file input").set_input_files(saved.value.path())
        expect(page.locator(".tbt-said-so")).to_contain_text("Imported: 1")
        assert page.evaluate(entry)["step"] == -1


def test_hints_come_one_by_one(browser: Browser, address: str) -> None:
    card = next(card for card in CARDS if len(card.questions[0].hints) > 1)
    with opened(browser, address, f"lessons/{card.slug}/") as page:
        question = page.locator(".tbt-question").first
        hint = question.get_by_role("button", name="A hint")
        for count in range(1, len(card.questions[0].hints) + 1):
            hint.click()
            assert question.locator(".tbt-hints li:visible").count() == count
        expect(hint).to_be_hidden()


def test_the_filter_is_in_the_address_and_leads_from_card_to_card(
    browser: Browser, address: str
) -> None:
    level = [card for card in CARDS if card.level == "L2"]
    with opened(browser, address, "lessons/") as page:
        page.locator(".tbt-filter [name=level]").select_option("L2")
        assert page.url.endswith("?level=L2")
        expect(page.locator(".tbt-cards > li:visible")).to_have_count(len(level))
        page.locator(".tbt-filter [name=q]").fill(level[0].title)
        expect(page.locator(".tbt-cards > li:visible")).to_have_count(1)
        page.locator(".tbt-filter [name=q]").fill("")
        page.locator(".tbt-filter [name=sort]").select_option("minutes")
        shown = page.locator(".tbt-cards > li:visible").evaluate_all(
            "rows => rows.map(row => Number(row.dataset.minutes))"
        )
        assert shown == sorted(card.minutes for card in level)
        page.locator(f"li[data-slug='{level[0].slug}'] a").click()
        following = page.locator(f".tbt-around a[href*='{level[1].slug}']")
        following.click()
        assert f"{level[1].slug}/?level=L2" in page.url
        page.goto(f"{address}lessons/?kind=Debug")
        assert page.locator(".tbt-filter [name=kind]").input_value() == "Debug"


def test_a_press_draws_a_sketch(browser: Browser, address: str) -> None:
    card = next(c for c in CARDS if any(q.type == "sketch" for q in c.questions))
    ident = next(q.id for q in card.questions if q.type == "sketch")
    with opened(browser, address, f"lessons/{card.slug}/#{ident}") as page:
        question = page.locator(f"#{ident}")
        box = question.locator(".tbt-draw svg").bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + box["width"] - 20, box["y"] + box["height"] / 2)
        entries = question.locator(".tbt-entries input")
        assert float(entries.last.input_value()) > 0 and entries.first.input_value() == ""
        assert question.locator(".tbt-own circle").count() == 1


def test_on_paper_a_card_asks_and_does_not_answer(browser: Browser, address: str) -> None:
    card = OF_KIND["Estimate"]
    with opened(browser, address, f"lessons/{card.slug}/") as page:
        page.emulate_media(media="print")
        assert page.locator(".tbt-question:visible").count() == len(card.questions)
        assert (
            page.locator(".tbt-explain:visible, .tbt-why:visible, .tbt-card button:visible").count()
            == 0
        )


def test_a_card_is_light(site: Path) -> None:
    """The page, its styles and its scripts, before any chart."""
    for card in CARDS:
        page = (site / "lessons" / card.slug / "index.html").read_text(encoding="utf-8")
        files = set(re.findall(r'(?:src|href)="?((?:\.\./)+assets/[^"\s>]+\.(?:js|css))', page))
        files |= {f"../../assets/js/{name}.js" for name in ("grade", "progress", "sketch")}
        parts = [site / file.replace("../", "") for file in files]
        size = len(gzip.compress(page.encode()))
        size += sum(len(gzip.compress(path.read_bytes())) for path in parts)
        assert len(parts) > 6 and size < 120_000, (card.slug, size)


def test_search_finds_a_question_and_no_answer(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    for card in CARDS:
        assert card.title in index
        for question in card.questions:
            for option in question.options:
                assert option.why not in index
