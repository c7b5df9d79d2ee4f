"""Recorded text is data, never markup: the only two ways in which it may reach a page."""

import html
import re

# Control characters would let text collide with Markdown's own placeholders.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_LINK = re.compile(r"[\[\]`*\\]")
_MARKDOWN = re.compile(r"[^\w\s.,%/+−–]|_")


def text(value: object) -> str:
    """For HTML blocks and attributes. Brackets and the like become entities as well, so that the
    text stays text even where Markdown should read the block.
    """
    clean = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(value))
    return _LINK.sub(lambda found: f"&#{ord(found.group())};", html.escape(clean, quote=True))


def inline(value: object) -> str:
    """For running Markdown: every character that Markdown or HTML could read becomes an entity."""
    clean = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(value))
    return _MARKDOWN.sub(lambda found: f"&#{ord(found.group())};", " ".join(clean.split()))
