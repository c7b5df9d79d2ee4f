"""Takes secrets and machine paths out of what is recorded: argv, environments, log lines."""

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import overload

HIDDEN = "[redacted]"
REPO = Path(__file__).parents[2]

_SECRET_WORDS = {
    "apikey",
    "authorization",
    "credential",
    "credentials",
    "key",
    "keys",
    "pass",
    "passwd",
    "password",
    "pwd",
    "secret",
    "token",
}
# Words beside "token" that make it a count or a symbol, not a credential.
_PLAIN_BESIDE_TOKEN = {
    "max",
    "min",
    "num",
    "new",
    "cached",
    "id",
    "ids",
    "bos",
    "eos",
    "pad",
    "unk",
    "threshold",
    "budget",
    "limit",
}

_BARE = [  # secrets that show by their shape
    (re.compile(r"(?i)\b(bearer|basic) +[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {HIDDEN}"),
    (re.compile(r"\b(hf_|sk-|gh[opsu]_|AKIA)[A-Za-z0-9_-]{8,}"), HIDDEN),
    (re.compile(r"://[^/\s:@]*:[^/\s@]+@"), f"://{HIDDEN}@"),
]
_VALUE = r"""(?P<value>[^\s"',;\]})]+)"""
_NAME = r"(?P<name>%s[\w.-]*(?i:key|token|secret|pass|pwd|credential|authorization)[\w.-]*)"
_NAMED = (
    # name=value, name: value, "name": "value", 'name': ['value']
    re.compile(_NAME % "-*" + r"""(?P<mid>["']?\s*[=:]\s*[\["']*)""" + _VALUE),
    re.compile(_NAME % "--" + r"(?P<mid>\s+)(?!-)" + _VALUE),
)
_SAFE_VALUES = {"None", "True", "False", "null", "Bearer", "Basic", "redacted"}


def is_secret_name(name: str) -> bool:
    """Whether a variable or flag of that name holds a secret: by whole words, so not max_tokens."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    words = [word for word in re.split(r"[^A-Za-z]+", spaced.lower()) if word]
    if "token" in words and _PLAIN_BESIDE_TOKEN & set(words):
        words.remove("token")
    return bool(_SECRET_WORDS & set(words)) and name != "PWD"  # the shell's working folder


@overload
def redact(value: str) -> str: ...
@overload
def redact(value: list[str]) -> list[str]: ...
def redact(value: str | list[str]) -> str | list[str]:
    """A line of text, or a whole command line, without secrets and with short paths."""
    if isinstance(value, str):
        for pattern, replacement in _BARE:
            value = pattern.sub(replacement, value)
        for pattern in _NAMED:
            value = pattern.sub(_hide_value, value)
        for secret in _known_secrets():
            value = value.replace(secret, HIDDEN)
        return _shorten(value)
    out: list[str] = []
    for word in value:
        after_secret = bool(out) and out[-1].startswith("-") and is_secret_name(out[-1])
        out.append(HIDDEN if after_secret and not word.startswith("-") else redact(word))
    return out


@cache
def _known_secrets() -> tuple[str, ...]:
    """Values of the shell's own secrets, which an engine may print without their names."""
    found = {v for k, v in os.environ.items() if is_secret_name(k) and len(v) >= 8}
    return tuple(sorted(found, key=len, reverse=True))


def redact_env(env: Mapping[str, str]) -> dict[str, str]:
    return {k: HIDDEN if is_secret_name(k) else redact(v) for k, v in env.items()}


def _hide_value(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"]
    counts = "token" in name and re.fullmatch(r"[\d.]+", value)  # SGLang logs "#token: 1345"
    if not is_secret_name(name) or value in _SAFE_VALUES or counts:
        return match[0]
    return f"{name}{match['mid']}{HIDDEN}"


def _shorten(text: str) -> str:
    home = os.path.expanduser("~")
    for path, short in ((str(REPO), "$REPO"), (home, "~")):
        if len(path) > 1:
            text = re.sub(rf"{re.escape(path)}(?=/|\b(?![\w.-])|$)", short, text)
    return text
