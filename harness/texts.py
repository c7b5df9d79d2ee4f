"""Prompts that are text: a file of JSON lines beside the declaration, one prompt a line.

    {"id": "edit-01", "kind": "edit", "prompt": "...", "prompt_tokens": 210, "output_tokens": 64}

kind: what a sweep's `kinds` picks lines by. prompt: sent as it is at `completions`, as the user's
message at `chat`. prompt_tokens: its exact length by the model's tokenizer, with what the server
adds. output_tokens: the most, where it is less than the sweep's. extra: merged into the body of the
request. extras: the same by name, of which a sweep's `extra` picks one a cell. expected, schema:
what a right answer is, for a check afterwards; expected goes into the recording.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.sweep import Sweep
from harness.toml_values import build, require, table


@dataclass(frozen=True, slots=True)
class Text:
    """One line, as the docstring of the module says."""

    id: str
    prompt: str
    prompt_tokens: int
    kind: str = ""
    output_tokens: int = 0
    extra: dict[str, Any] | None = None
    extras: dict[str, dict[str, Any]] | None = None
    expected: str = ""
    schema: dict[str, Any] | None = None

    def merged(self, name: str | None) -> dict[str, Any]:
        """What is merged into the body of a request at the level of that name."""
        return (self.extra or {}) | (self.extras or {}).get(name or "", {})


@cache
def read(path: Path) -> tuple[Text, ...]:
    """Every line. Raises HarnessError naming file and line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise HarnessError(f"{path}: cannot be read: {error}") from None
    texts = tuple(_text(path, number, line) for number, line in enumerate(lines, start=1))
    require(path, "id", len({text.id for text in texts}) == len(texts), "two lines share one")
    return texts


def _text(path: Path, number: int, line: str) -> Text:
    try:
        raw = json.loads(line)
    except ValueError as error:
        raise HarnessError(f"{path}: line {number} is not JSON ({error})") from None
    where = f"line {number}"
    text = build(Text, path, where, table(path, where, raw))
    for key in ("extra", "extras", "schema"):
        is_table = isinstance(getattr(text, key), dict | None)
        require(path, f"{where}.{key}", is_table, "must be an object")
    for name, extra in (text.extras or {}).items():
        require(path, f"{where}.extras.{name}", isinstance(extra, dict), "must be an object")
    return text


def of_sweep(sweep: Sweep, folder: Path) -> tuple[Text, ...]:
    """The lines of a sweep's file. Raises HarnessError where one does not fit the sweep."""
    path = folder / sweep.texts
    texts = read(path)
    for number, text in enumerate(texts, start=1):
        where, most = f"line {number}", sweep.prompt_tokens[0]
        fits = 0 < text.prompt_tokens <= most
        require(
            path, f"{where}.prompt_tokens", fits, f"not within the {most} of sweep {sweep.name!r}"
        )
        fits = 0 <= text.output_tokens <= sweep.output_tokens
        said = f"more than the {sweep.output_tokens} of sweep {sweep.name!r}"
        require(path, f"{where}.output_tokens", fits, said)
        lacking = set(sweep.extra) - set(text.extras or {})
        require(path, f"{where}.extras", not lacking, f"lacks {', '.join(sorted(lacking))}")
    for kind in sweep.kinds or ("",):
        some = any(kind in ("", text.kind) for text in texts)
        require(path, "kind", some, f"no line of kind {kind!r}")
    return texts
