"""Reads an engine's Prometheus /metrics.

Histogram buckets are dropped: their sum and count are kept, and at one request in flight the
difference of a sum over a cell is exact.
"""

import math
import time
import urllib.request
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

SKIPPED_PREFIXES = ("python_", "process_", "http_")
SKIPPED_LABELS = ("model_name", "le")
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # straight to the engine


@dataclass(frozen=True, slots=True)
class Scrape:
    """One read of /metrics: values by (name, labels), and when the answer was in."""

    t_ns: int
    took_ns: int
    values: dict[tuple[str, str], float]


def scrape(url: str, timeout_s: float = 5.0) -> Scrape:
    """Raises OSError where the engine does not answer."""
    asked_ns = time.monotonic_ns()
    with _OPENER.open(url, timeout=timeout_s) as answer:
        text = answer.read().decode("utf-8", "replace")
    t_ns = time.monotonic_ns()
    return Scrape(t_ns, t_ns - asked_ns, parse(text))


def parse(text: str) -> dict[tuple[str, str], float]:
    """{(name, "label=value,..."): value}. Raises ValueError on text that is not Prometheus's."""
    values: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(text):
        if family.name.startswith(SKIPPED_PREFIXES):
            continue
        for sample in family.samples:
            if sample.name.endswith(("_bucket", "_created")):
                continue
            if math.isnan(sample.value):  # SGLang's way to say that there is no value yet
                continue
            labels = ",".join(
                f"{key}={value}"
                for key, value in sorted(sample.labels.items())
                if key not in SKIPPED_LABELS
            )
            values[sample.name, labels] = float(sample.value)
    return values


def changed(before: dict[tuple[str, str], float], now: Scrape) -> dict[tuple[str, str], float]:
    """The values that differ from the sample before: all that a recording keeps."""
    return {key: value for key, value in now.values.items() if before.get(key) != value}
