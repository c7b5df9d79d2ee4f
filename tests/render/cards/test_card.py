"""What a card's file may say: every fault names the file and the key."""

import re
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.render.cards import card as cards
from harness.render.cards.card import KINDS, LEVELS
from harness.render.cards.rules import KEYS
from tests.render.cards.conftest import change
from tests.render.conftest import REPO


def test_a_card_is_read(card: Path) -> None:
    found = cards.load(card)
    assert (found.number, found.slug, found.level, found.minutes) == ("07", "a-card", "L1", 11)
    assert [question.type for question in found.questions] == list(KEYS)
    assert found.questions[0].options[1].right and not found.asks_confidence


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('level = "L1"', 'level = "L9"', r"07-a-card\.toml: level: is one of L1, L2"),
        ('kind = "Concept"', 'kind = "Riddle"', "kind: is one of Concept, Debug"),
        ("minutes = 11", "minutes = 90", "minutes: a card takes 5 to 15"),
        ("minutes = 11", 'minutes = "11"', "card.minutes must be int"),
        ("minutes = 11", "minute = 11", r"unknown key card\.minute "),
        ('id = "many"', 'id = "one"', "question: two have one id"),
        ("It was {{ answer }}.", "It was so.", r"question\[wait\]\.explain: of a number says it"),
        ('type = "multi"', 'type = "all"', r"question\[many\]\.type: is one of single"),
        ('text = "Neither"', 'text = "None of these"', r"option\[3\]\.text: must stand by itself"),
        ('text = "Neither"\n', "", r"question\[one\]\.option\[3\]\.text: is missing"),
        ('why = "It has the smaller factor here."', 'why = "No."', r"option\[1\]\.why: says why"),
        ("right = true\nwhen", "when", r"question\[one\]\.option: 0 are right, one must be"),
        ('text = "SGLang does"', f'text = "{"so " * 9}"', r"\[one\]\.option: the right one can be"),
        ('type = "number"', 'type = "number"\nneed = 2', r"\[wait\]\.need: a number does not take"),
        ('unit = "ms"\nformat', 'factor = 1.0\nunit = "ms"\nformat', r"factor: is a ratio above 1"),
        ("good = false", "good = true", r"question\[say\]\.sample: shows at least one good"),
        ("need = 1", "need = 5", r"question\[say\]\.need: is how many of its points"),
        ('page = "method.md"\n', "", r"source\[method\]\.page: is missing"),
        ('kind = "page"', 'kind = "blog"', r"source\[method\]\.kind: is one of episode, page"),
    ],
)
def test_a_fault_names_the_file_and_the_key(card: Path, old: str, new: str, message: str) -> None:
    change(card, old, new)
    with pytest.raises(HarnessError, match=message) as fault:
        cards.load(card)
    assert str(fault.value).startswith(str(card))


def test_a_source_that_no_question_names_is_a_fault(card: Path) -> None:
    more = '[[source]]\nid = "x"\nkind = "paper"\ntitle = "T"\nurl = "https://arxiv.org/abs/1"\n'
    change(card, "[[source]]", f"{more}[[source]]")
    with pytest.raises(HarnessError, match=r"source\[x\]: no question names it"):
        cards.load(card)
    change(card, "https://arxiv.org/abs/1", "arxiv.org")
    with pytest.raises(HarnessError, match=r"source\[x\]\.url: 'arxiv\.org' is no https address"):
        cards.load(card)


def test_a_kind_has_what_it_needs(card: Path) -> None:
    change(card, 'kind = "Concept"', 'kind = "Code reading"')
    cards.load(card)
    content = card.read_text(encoding="utf-8")
    begun = "[[question]]\nid = "
    start, end = content.index(f'{begun}"pick"'), content.index(f'{begun}"draw"')
    card.write_text(content[:start] + content[end:], encoding="utf-8")
    with pytest.raises(HarnessError, match="a card of the kind Code reading asks for a line"):
        cards.load(card)


def test_two_cards_have_two_numbers(card: Path, root: Path) -> None:
    card.with_name("07-other.toml").write_text(card.read_text())
    with pytest.raises(
        HarnessError, match=r"07-other\.toml: number '07' is that of 07-a-card\.toml"
    ):
        cards.read_all(root)


def test_the_readme_names_every_type_and_key() -> None:
    readme = (REPO / "lessons" / "README.md").read_text(encoding="utf-8")
    kinds = (cards.Source, cards.Option, cards.Slip, cards.Sample, cards.Question, cards.Card)
    fields = {name for kind in kinds for name in kind.__dataclass_fields__}
    fields -= {"options", "slips", "samples", "questions", "sources", "path", "number", "slug"}
    for name in [*KEYS, *KINDS, *LEVELS, *fields]:
        assert re.search(rf"\b{re.escape(name)}\b", readme), name
