"""NVML's readings under the recording's names and units; what a card does not give is NULL."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from harness.telemetry import gpu, machine
from harness.telemetry.sampler import Sampler

READINGS: dict[str, Any] = {
    "nvmlDeviceGetName": lambda card: f"H200 number {card}",
    "nvmlDeviceGetClockInfo": lambda card, kind: {
        pynvml.NVML_CLOCK_SM: 1980,
        pynvml.NVML_CLOCK_MEM: 3201,
    }[kind],
    "nvmlDeviceGetPowerUsage": lambda card: 412_500,  # mW
    "nvmlDeviceGetTemperature": lambda card, sensor: {pynvml.NVML_TEMPERATURE_GPU: 61}[sensor],
    "nvmlDeviceGetMemoryInfo": lambda card: SimpleNamespace(used=70 << 30, total=141 << 30),
    "nvmlDeviceGetUtilizationRates": lambda card: SimpleNamespace(gpu=87, memory=40),
    "nvmlDeviceGetCurrentClocksEventReasons": lambda card: 0x4,
}


def fails(error: int) -> Callable[..., Any]:
    def call(*_: object) -> Any:
        raise pynvml.NVMLError(error)

    return call


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with two cards, whose handles are their indices."""
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: 2)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: index)
    for name, get in READINGS.items():
        monkeypatch.setattr(pynvml, name, get)
    return monkeypatch


def test_a_sample_has_watts_shares_and_bytes_of_every_card(cards: pytest.MonkeyPatch) -> None:
    first, second = gpu.sample()
    assert (first.gpu, second.gpu) == (0, 1)
    assert 0 < first.t_ns <= second.t_ns
    assert (first.sm_clock_mhz, first.memory_clock_mhz) == (1980, 3201)
    assert (first.power_w, first.temperature_c) == (412.5, 61)
    assert (first.memory_used_bytes, first.busy_frac) == (70 << 30, 0.87)
    assert first.throttle_reasons == 4
    assert gpu.names() == ["H200 number 0", "H200 number 1"]
    assert machine.tier() == "gpu"


@pytest.mark.parametrize(
    ("call", "fields"),
    [
        ("nvmlDeviceGetClockInfo", {"sm_clock_mhz", "memory_clock_mhz"}),
        ("nvmlDeviceGetPowerUsage", {"power_w"}),
        ("nvmlDeviceGetTemperature", {"temperature_c"}),
        ("nvmlDeviceGetMemoryInfo", {"memory_used_bytes"}),
        ("nvmlDeviceGetUtilizationRates", {"busy_frac"}),
        ("nvmlDeviceGetCurrentClocksEventReasons", {"throttle_reasons"}),
    ],
)
def test_what_a_card_does_not_give_is_missing_and_the_rest_is_there(
    cards: pytest.MonkeyPatch, call: str, fields: set[str]
) -> None:
    cards.setattr(pynvml, call, fails(pynvml.NVML_ERROR_NOT_SUPPORTED))
    for sample in gpu.sample():
        missing = {name for name in gpu.GpuSample.__slots__ if getattr(sample, name) is None}
        assert missing == fields


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetCount"])
def test_without_a_driver_there_are_no_cards(cards: pytest.MonkeyPatch, call: str) -> None:
    cards.setattr(pynvml, call, fails(pynvml.NVML_ERROR_DRIVER_NOT_LOADED))
    assert (gpu.count(), gpu.names(), gpu.sample()) == (0, [], [])
    assert machine.tier() == "cpu"


def test_a_card_that_is_lost_ends_the_sampling_and_is_noted(cards: pytest.MonkeyPatch) -> None:
    cards.setattr(pynvml, "nvmlDeviceGetHandleByIndex", fails(pynvml.NVML_ERROR_GPU_IS_LOST))
    with Sampler(None, 20.0, list) as sampler:
        pass
    assert sampler.telemetry.gpus == [] and len(sampler.telemetry.hosts) == 1
    (fault,) = sampler.telemetry.faults
    assert fault.startswith("watch_host: ") and "NVMLError" in fault
