"""The head of a generated page: what MkDocs and Material read of it."""

import json


def front_matter(
    title: str, description: str, hide: tuple[str, ...] = (), search: bool = True
) -> str:
    """YAML between two lines. hide: parts of Material's page. search: whether search finds it."""
    lines = [  # JSON strings are YAML strings
        f"title: {json.dumps(title, ensure_ascii=False)}",
        f"description: {json.dumps(description, ensure_ascii=False)}",
    ]
    if hide:
        lines.append(f"hide: [{', '.join(hide)}]")
    if not search:
        lines.append("search: {exclude: true}")
    return "---\n" + "\n".join(lines) + "\n---\n\n"
