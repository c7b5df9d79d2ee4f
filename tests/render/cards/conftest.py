"""A card of every type of question on the small checkout's recording."""

from pathlib import Path

import pytest

# TTFT of the recording: factor * (prompt + 10 * repeat) * 0.1 ms; vLLM's factor is 2, SGLang's 3.
SQL = """
-- name: waits
SELECT engine, c.prompt_tokens, median((first_token_ns - sent_ns) / 1e6) AS ms
FROM request JOIN cell c USING (cell_id)
WHERE c.prompt_tokens > 32 GROUP BY ALL ORDER BY engine, c.prompt_tokens
"""
CARD = """
title = "A card"
level = "L1"
kind = "Concept"
minutes = 11
episode = "00"
summary = "One line."
intro = '''
The wait was {{ n("waits.ms", ".1f", engine="vllm", prompt_tokens=64) }} ms.
'''
takeaway = '''Keep it.'''

[[source]]
id = "method"
kind = "page"
page = "method.md"
heading = "Clocks"

[[question]]
id = "one"
type = "single"
ask = "Which waits longer?"
hints = ["Look."]
explain = '''It is so.'''
claims = ['value("waits.ms", engine="sglang", prompt_tokens=64) > 20']
sources = ["method"]
[[question.option]]
text = "vLLM does it"
when = 'value("waits.ms", engine="vllm", prompt_tokens=64) > 20'
why = "It has the smaller factor here."
[[question.option]]
text = "SGLang does"
right = true
when = 'value("waits.ms", engine="sglang", prompt_tokens=64) > 20'
why = "It has the larger factor here."
[[question.option]]
text = "Neither"
why = "They have different factors here."

[[question]]
id = "many"
type = "multi"
ask = "Which are engines?"
hints = ["Look."]
explain = '''Two are.'''
sources = ["method"]
[[question.option]]
text = "vLLM"
right = true
why = "It serves a model here."
[[question.option]]
text = "Locust"
why = "It sends the load instead."
[[question.option]]
text = "SGLang"
right = true
why = "It serves a model too."

[[question]]
id = "wait"
type = "number"
ask = "How long?"
hints = ["Look."]
answer = 'value("waits.ms", engine="vllm", prompt_tokens=64)'
unit = "ms"
format = ".1f"
explain = '''It was {{ answer }}.'''
sources = ["method"]
[[question.slip]]
value = '1000 * value("waits.ms", engine="vllm", prompt_tokens=64)'
say = "You wrote microseconds."

[[question]]
id = "rank"
type = "order"
ask = "Shortest first?"
hints = ["Look."]
explain = '''By length.'''
sources = ["method"]
[[question.option]]
text = "64"
by = 'value("waits.ms", engine="vllm", prompt_tokens=64)'
why = "It is the shortest prompt."
[[question.option]]
text = "128"
by = 'value("waits.ms", engine="vllm", prompt_tokens=128)'
why = "It is twice as long."
[[question.option]]
text = "256"
by = 'value("waits.ms", engine="vllm", prompt_tokens=256)'
why = "It is twice that again."

[[question]]
id = "pick"
type = "line"
ask = "Which line is wrong?"
hints = ["Look."]
lines = '''
a = "<b>"
wait = 3

{% for row in rows("waits")[:1] %}{{ row.engine }} * 2{% endfor %}
'''
otherwise = "That line is quite right."
explain = '''Line two.'''
sources = ["method"]
[[question.option]]
find = "wait = 3"
right = true
why = "It waits for nothing at all."

[[question]]
id = "draw"
type = "sketch"
ask = "Sketch it."
hints = ["Look."]
points = "waits"
x = "prompt_tokens"
y = "ms"
where = { engine = "vllm" }
x_label = "Prompt"
y_label = "Wait"
unit = "ms"
need = 3
explain = '''A line.'''
sources = ["method"]

[[question]]
id = "say"
type = "text"
ask = "Explain it."
hints = ["Look."]
need = 1
explain = '''So it is.'''
sources = ["method"]
[[question.option]]
text = "The factor"
why = "It differs between the engines."
[[question.option]]
text = "The length"
why = "Longer prompts take longer here."
[[question.sample]]
title = "short"
good = true
text = "The factor."
[[question.sample]]
title = "off"
good = false
text = "The weather."
"""


@pytest.fixture
def card(root: Path) -> Path:
    """The card's file in a small checkout, which is three folders up."""
    path = root / "lessons" / "07-a-card.toml"
    path.parent.mkdir()
    path.write_text(CARD, encoding="utf-8")
    path.with_suffix(".sql").write_text(SQL, encoding="utf-8")
    return path


def change(path: Path, old: str, new: str) -> None:
    content = path.read_text(encoding="utf-8")
    assert content.count(old) == 1, (old, content.count(old))
    path.write_text(content.replace(old, new), encoding="utf-8")
