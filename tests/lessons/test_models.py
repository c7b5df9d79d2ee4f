"""The small models that stand beside cards, on values worked out by hand."""

import pytest

from harness.render import model
from tests.render.conftest import REPO


def test_the_fleet_of_l4_cards() -> None:
    (path,) = (REPO / "lessons").glob("31-*.py")
    fleet = model.load(path)["fleet"]
    good = fleet.function("FP8", 32, 1000, 100)
    # a step: (8.03 GB + 32 users * 1,650 tokens * 131,072 bytes) / 240 GB/s = 62.3 ms; a request's
    # share of a card: 300 * 62.3 / 32 = 584 ms, and 500 tokens * 16.06 GFLOP / 96.8 TFLOPS = 83 ms
    assert good["per_s"] == pytest.approx(1 / (300 * 0.06229 / 32 + 0.08295), rel=1e-3)
    assert good["tpot_ms"] == pytest.approx(71.1, abs=0.1) and good["cards"] == 10
    assert fleet.function("FP8", 16, 0, 50)["cards"] == 20  # 1,500 tokens at half the clock
    assert fleet.function("BF16", 16, 0, 100)["pool"] == 37_000 // 1650 == 22
