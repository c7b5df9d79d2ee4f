"""TOML values -> fields of dataclasses; every error names the file and the key."""

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from harness.errors import HarnessError

T = TypeVar("T")


def require(path: Path, key: str, holds: bool, message: str) -> None:
    """Raises HarnessError naming file and key unless it holds."""
    if not holds:
        raise HarnessError(f"{path}: {key}: {message}")


def table(path: Path, where: str, value: object) -> dict[str, Any]:
    """The value, which must be a TOML table."""
    if not isinstance(value, dict):
        raise HarnessError(f"{path}: [{where}] must be a table")
    return value


def build(kind: type[T], path: Path, where: str, raw: dict[str, Any]) -> T:
    """A dataclass from a TOML table: every key known, every needed key there, every type right."""
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for key in raw:
        if key not in known:
            raise HarnessError(
                f"{path}: unknown key {where}.{key} (known: {', '.join(sorted(known))})"
            )
    values: dict[str, Any] = {}
    for name, field in known.items():
        if name in raw:
            values[name] = typed(path, f"{where}.{name}", raw[name], hints[name])
        elif field.default is MISSING and field.default_factory is MISSING:
            raise HarnessError(f"{path}: missing key {where}.{name}")
    return kind(**values)


def typed(path: Path, key: str, value: Any, hint: Any) -> Any:
    """The value as its field wants it; a list field of numbers takes one number too."""
    if isinstance(value, tuple):  # built already: TOML has no tuples
        return value
    if get_origin(hint) is tuple:
        (inner, *_) = get_args(hint)
        items = [value] if inner in (int, float) and type(value) in (int, float) else value
        if not isinstance(items, list):
            raise HarnessError(f"{path}: {key} must be a list, not {value!r}")
        if get_origin(inner) is tuple:
            return tuple(_row(path, key, item, get_args(inner)) for item in items)
        return tuple(typed(path, f"{key}: every item", item, inner) for item in items)
    if get_origin(hint) is dict:
        (_, inner) = get_args(hint)
        items = table(path, key, value).items()
        return {name: typed(path, f"{key}.{name}", item, inner) for name, item in items}
    if hint is float and type(value) is int:
        return float(value)
    if hint in (int, float, str, bool) and type(value) is not hint:
        raise HarnessError(f"{path}: {key} must be {hint.__name__}, not {value!r}")
    return value


def _row(path: Path, key: str, value: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(value, list) or len(value) != len(kinds):
        raise HarnessError(f"{path}: {key} must hold lists of {len(kinds)}, not {value!r}")
    return tuple(typed(path, key, item, kind) for item, kind in zip(value, kinds, strict=True))
