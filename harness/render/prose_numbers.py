"""No measured number is typed in prose. This check fails where one is.

The rule: a number followed by a unit of measurement (ms, s, tok/s, GB, %, ×, W, MHz, ...) or led by
a currency sign must come out of a helper: n(...) for recorded numbers, or one that says what the
number is instead: cited(...), computed(...), declared(...), and on a card given(...). It holds for
episode.md, for the cards, for the text in Python files beside them, and for the hand-written pages
under docs/. There, where no
helpers are, <span class="tbt-declared">...</span> marks a number that was chosen and not measured.
Fenced code blocks are left out. Counts without a unit ("two cores", "17 episodes") are not
measurements and pass.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError

GENERATED = ("episodes", "lessons", "reference", "assets")
UNITS = (
    r"ms|µs|μs|us|ns|seconds?|milliseconds?|microseconds?|nanoseconds?|minutes?|hours?|sec|min|h|"
    r"(?:tok|tokens?|req|requests?|chunks?)(?:\s*/\s*s|\s+(?:per|a|each)\s+second)|RPS|QPS|"
    r"[kKMGT]i?B(?:/s)?|bytes?|[MG]bit/s|%|percent|per cent|percentage points|pp|"
    r"m?W|kW|watts?|J|kWh|[kMG]Hz|°C|core-hours?|GPU-hours?|times (?:faster|slower|more|less|as)|"
    r"USD|EUR|dollars?|cents?"
)
NUMBER = r"\d[\d.,]*(?:e[+-]?\d+)?"
TYPED = re.compile(
    rf"(?<![\w.-]){NUMBER}(?:\s|&nbsp;|\u00a0|\u202f|-)?(?:{UNITS})(?![\w])"
    rf"|(?<![\w.-]){NUMBER}(?:\s|\u00a0)?%"
    rf"|(?<![\w.-])(?:{NUMBER}\s+s|\d+[.,]\d+s|\d{{1,2}}s)(?![\w/])"  # not "the 1990s", not "200s"
    rf"|(?<![\w.-]){NUMBER}(?:[×x](?![\w(])|\s×(?!\s*[\w(]))"  # a factor, not a product
    rf"|[$€£]\s?{NUMBER}"
)
_ARGUMENTS = r"""(?:[^()"']|"[^"]*"|'[^']*'|\((?:[^()"']|"[^"]*"|'[^']*')*\))*"""
_MARKED = re.compile(
    rf"\b(?:cited|computed|declared|given)\({_ARGUMENTS}\)"
    r'|<span class="tbt-declared">.*?</span>'
    r"|\{#.*?#\}"
    r"|^(```|~~~).*?^\1"
    r"|\]\([^)\s]*\)|https?://\S+",  # link targets
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One typed number."""

    file: str
    line: int
    found: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.found!r} is typed, not read from a recording"


def check_text(content: str, file: str) -> list[Finding]:
    """Findings in one Markdown text."""
    blanked = _MARKED.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), content)
    return [
        Finding(file, blanked.count("\n", 0, found.start()) + 1, found.group().strip())
        for found in TYPED.finditer(blanked)
    ]


def check_charts(content: str, file: str) -> list[Finding]:
    """Findings in the strings of a Python file, docstrings included: they are shown as titles."""
    try:
        tree = ast.parse(content)
    except SyntaxError as error:
        raise HarnessError(f"{file}:{error.lineno}: {error.msg}") from error
    return [
        Finding(file, node.lineno, found.group().strip())
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for found in TYPED.finditer(node.value)
    ]


def check(root: Path) -> None:
    """Raises HarnessError with a line for each number that is typed in the prose of a checkout."""
    findings = find(root)
    if findings:
        raise HarnessError("\n".join(str(finding) for finding in findings))


def find(root: Path) -> list[Finding]:
    """Findings in all prose of a checkout."""
    findings: list[Finding] = []
    docs = [
        path
        for path in sorted((root / "docs").rglob("*.md"))
        if path.relative_to(root / "docs").parts[0] not in GENERATED
    ]
    texts = [*sorted((root / "episodes").glob("*/episode.md")), *docs]
    index = root / "episodes" / "index.toml"
    for path in [*texts, *([index] if index.exists() else [])]:
        findings += check_text(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())
    for path in sorted((root / "lessons").glob("*.toml")):
        titled = re.sub(r"^title = .*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        findings += check_text(titled, path.relative_to(root).as_posix())
    beside = (root / "lessons").glob("*.py")
    for path in sorted([*(root / "episodes").glob("*/*.py"), *beside]):
        file = path.relative_to(root).as_posix()
        findings += check_charts(path.read_text(encoding="utf-8"), file)
    return findings
