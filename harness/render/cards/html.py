"""A question as HTML that can be read with scripts off, and that the script makes a form of.

The answers stand in one <details>, which search leaves out; docs/assets/js/cards.js takes the parts
of it to their places once there is an answer. Nothing is written twice.
"""

from harness.render import figure, queries
from harness.render.cards.card import Card, Question, Sample
from harness.render.cards.key import Key, digest, work_out
from harness.render.cards.links import Links
from harness.render.cards.text import CardText
from harness.render.escape import text as escaped

CONFIDENCE = ("a guess", "fairly sure", "certain")


def question_html(text: CardText, question: Question, place: int, links: Links) -> str:
    """The <section> of one question."""
    key = work_out(text, question)
    where = f"question[{question.id}]"
    show = text.html(f"{where}.show", question.show) if question.show else ""
    data = "".join(f' data-{name}="{escaped(value)}"' for name, value in key.data.items())
    count = len(text.card.questions)
    return (
        f'<section class="tbt-question" id="{question.id}" data-type="{question.type}"'
        f' data-hash="{digest(question, key)}"{data}>'
        f'<h2>Question {place} <span class="tbt-of">of {count}</span></h2>{show}'
        f'<form novalidate autocomplete="off"><fieldset class="tbt-ask">'
        f"<legend>{text.line(f'{where}.ask', question.ask)}</legend>"
        f"{_inputs(text, question, key)}</fieldset>"
        f"{_confidence(text.card, question)}{_hints(text, question)}"
        '<div class="tbt-buttons" hidden><button type="submit">Check</button></div>'
        '<p class="tbt-verdict" role="status" aria-atomic="true"></p></form>'
        f"{_answers(text, question, key, links)}</section>"
    )


def _inputs(text: CardText, question: Question, key: Key) -> str:
    kind, ident = question.type, question.id
    if kind in ("single", "multi"):
        control = "radio" if kind == "single" else "checkbox"
        said = _said(text, question)
        options = "".join(_choice(control, ident, i, each) for i, each in enumerate(said))
        more = '<p class="tbt-note">More than one is right.</p>' if kind == "multi" else ""
        return more + options
    if kind == "line":
        rows = "".join(
            _choice(
                "radio",
                ident,
                i,
                f'<span class="tbt-of">{i + 1}</span> <code>{escaped(line)}</code>',
            )
            for i, line in enumerate(key.lines)
        )
        return f'<div class="tbt-lines">{rows}</div>'
    if kind == "order":
        return _order(text, question, key)
    if kind == "number":
        unit = f' <span id="{ident}-unit">{escaped(question.unit)}</span>' if question.unit else ""
        named = f' aria-describedby="{ident}-unit"' if question.unit else ""
        return (
            f'<label class="tbt-number"><span>Your answer</span> <input type="text" name="{ident}"'
            f' inputmode="decimal" size="12"{named}>{unit}</label>'
        )
    if kind == "sketch":
        return _sketch(question, key)
    return (
        f'<label class="tbt-text"><span>Your answer, in a few sentences</span>'
        f'<textarea name="{ident}" rows="6"></textarea></label>'
    )


def _choice(control: str, ident: str, place: int, shown: str) -> str:
    return (
        f'<div class="tbt-option" data-option="{place}"><input type="{control}" name="{ident}"'
        f' id="{ident}-{place}" value="{place}"><label for="{ident}-{place}">{shown}</label></div>'
    )


def _order(text: CardText, question: Question, key: Key) -> str:
    """A list of places beside each thing: it works by any means of input."""
    count = len(question.options)
    stops = "".join(f"<option>{i}</option>" for i in range(1, count + 1))
    said, items = _said(text, question), []
    for place in key.places:
        ident = f"{question.id}-{place}"
        items.append(
            f'<div class="tbt-option" data-option="{place}"><select name="{ident}" id="{ident}">'
            f'<option value="">–</option>{stops}</select>'
            f'<label for="{ident}">{said[place]}</label></div>'
        )
    return '<p class="tbt-note">Give each its place, 1 first.</p>' + "".join(items)


def _sketch(question: Question, key: Key) -> str:
    """A number for each x; the script adds a picture that can be drawn in."""
    unit = f", {escaped(question.unit)}" if question.unit else ""
    rows = "".join(
        f'<label><span>{escaped(question.x_label)} {x:,g}</span><input type="text" size="8"'
        f' inputmode="decimal" name="{question.id}-{i}"></label>'
        for i, (x, _) in enumerate(key.points)
    )
    return (
        f'<p class="tbt-note">{escaped(question.y_label)}{unit}, at each'
        f" {escaped(question.x_label.lower())}. Draw in the picture, or write the numbers.</p>"
        f'<div class="tbt-draw" aria-hidden="true"></div><div class="tbt-entries">{rows}</div>'
    )


def _said(text: CardText, question: Question) -> list[str]:
    """The texts of the options as HTML; "" where an option has none."""
    where = f"question[{question.id}]"
    return [
        text.line(f"{where}.option[{i}].text", option.text) if option.text else ""
        for i, option in enumerate(question.options, 1)
    ]


def _confidence(card: Card, question: Question) -> str:
    if not card.asks_confidence or question.type == "text":
        return ""
    choices = "".join(
        f'<label><input type="radio" name="{question.id}-sure" value="{i}"> {said}</label>'
        for i, said in enumerate(CONFIDENCE)
    )
    return (
        f'<fieldset class="tbt-sure" hidden><legend>How sure are you?</legend>{choices}</fieldset>'
    )


def _hints(text: CardText, question: Question) -> str:
    where = f"question[{question.id}].hints"
    items = "".join(
        f"<li>{text.line(f'{where}[{i}]', hint)}</li>" for i, hint in enumerate(question.hints, 1)
    )
    return (
        '<details class="tbt-hints" data-search-exclude><summary>Hints</summary>'
        f'<ol aria-live="polite">{items}</ol></details>'
        if items
        else ""
    )


def _answers(text: CardText, question: Question, key: Key, links: Links) -> str:
    """The disclosure: the verdict on every option, the explanation, and where it is taught."""
    where = f"question[{question.id}]"
    explain = text.html(f"{where}.explain", question.explain, answer=key.answer)
    explain += taught_html(text.card, question, links)
    return (
        '<details class="tbt-key" data-search-exclude><summary>The answer</summary>'
        f"{_whys(text, question, key)}"
        f'<div class="tbt-explain">{explain}</div></details>'
    )


def _whys(text: CardText, question: Question, key: Key) -> str:
    where, kind = f"question[{question.id}]", question.type
    whys = [text.html(f"{where}.option[{i}].why", o.why) for i, o in enumerate(question.options, 1)]
    said = _said(text, question)
    if kind in ("single", "multi"):
        return "".join(
            _why(i, option.right, f"<strong>{said[i]}</strong>", whys[i])
            for i, option in enumerate(question.options)
        )
    if kind == "line":
        rows = "".join(
            _why(i, question.options[place].right, f"<strong>Line {i + 1}</strong>", whys[place])
            for i, place in enumerate(key.marked)
            if place >= 0
        )
        if -1 not in key.marked:
            return rows
        other = text.html(f"{where}.otherwise", question.otherwise)
        return rows + _why(-1, False, "<strong>Any other line</strong>", other)
    if kind == "order":
        items = "".join(
            f"<li><strong>{s}</strong> {w}</li>" for s, w in zip(said, whys, strict=True)
        )
        return f'<div class="tbt-whole"><p>In this order:</p><ol>{items}</ol></div>'
    if kind == "number":
        slips = "".join(
            f'<div class="tbt-why" data-low="{band.low:.9g}" data-high="{band.high:.9g}">'
            f"{text.html(f'{where}.slip[{i}].say', slip.say)}</div>"
            for i, (slip, band) in enumerate(zip(question.slips, key.slips, strict=True), 1)
        )
        return slips
    if kind == "sketch":
        rows_ = queries.Result([question.x_label, question.y_label], list(key.points))
        formats = {question.x_label: "g", question.y_label: question.format}
        table = figure.table_html(rows_, caption="Recorded", formats=formats)
        return f'<div class="tbt-whole">{table}</div>'
    rubric = "".join(
        f'<li><label><input type="checkbox" value="{i}"> <strong>{each}</strong></label>{why}</li>'
        for i, (each, why) in enumerate(zip(said, whys, strict=True))
    )
    samples = "".join(_sample(text, where, i, each) for i, each in enumerate(question.samples, 1))
    return (
        '<fieldset class="tbt-rubric"><legend>What does your answer hold? Tick it.</legend>'
        f"<ul>{rubric}</ul></fieldset>{samples}"
    )


def _why(place: int, right: bool, said: str, why: str) -> str:
    word = "Right" if right else "Wrong"
    return (
        f'<div class="tbt-why" data-option="{place}">'
        f'<span class="tbt-{word.lower()}">{word}.</span>'
        f' <span class="tbt-said">{said}</span>{why}</div>'
    )


def _sample(text: CardText, where: str, place: int, sample: Sample) -> str:
    word, look = ("A good answer", "good") if sample.good else ("Plausible, and bad", "bad")
    said = text.html(f"{where}.sample[{place}].text", sample.text)
    return (
        f'<div class="tbt-sample tbt-sample-{look}"><h3>{word}: {escaped(sample.title)}</h3>'
        f"{said}</div>"
    )


def taught_html(card: Card, question: Question, links: Links) -> str:
    """Where the answer comes from."""
    of = {source.id: source for source in card.sources}
    items = ", ".join(links.html(card, of[ident]) for ident in question.sources)
    return f'<p class="tbt-taught">Taught in: {items}</p>'
