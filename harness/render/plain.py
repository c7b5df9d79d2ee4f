"""A plotly figure as plain Python: lists in place of base64 arrays, numbers rounded, NaN as None.

What the browser gets must be small (a figure's data is at most 15 KB) and the static picture must
be drawn from exactly the same values.
"""

import base64
import math
from typing import Any

import numpy

SIGNIFICANT_DIGITS = 6


def plain(value: Any) -> Any:
    """Recursively: dicts, lists, strings and numbers of at most 6 significant digits."""
    if isinstance(value, dict):
        if "bdata" in value:
            return plain(_array(value))
        return {key: plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple | numpy.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, bool | str | int) or value is None:
        return value
    if isinstance(value, numpy.generic):
        return plain(value.item())
    if isinstance(value, float):
        return rounded(value)
    return str(value)


def rounded(value: float) -> float | int | None:
    """6 significant digits; whole numbers as int; None for NaN and the infinities (no JSON)."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def _array(value: dict[str, Any]) -> list[Any]:
    array = numpy.frombuffer(base64.b64decode(value["bdata"]), dtype=numpy.dtype(value["dtype"]))
    if "shape" in value:
        array = array.reshape([int(size) for size in str(value["shape"]).split(",")])
    return array.tolist()
