"""Samples of NVIDIA GPUs through NVML. On a machine without one there is nothing to sample."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pynvml


@dataclass(frozen=True, slots=True)
class GpuSample:
    """None where the card or its driver does not give the reading."""

    t_ns: int
    gpu: int
    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    power_w: float | None
    temperature_c: int | None
    memory_used_bytes: int | None
    busy_frac: float | None
    throttle_reasons: int | None


def count() -> int:
    """Number of GPUs; 0 where there is no driver."""
    try:
        pynvml.nvmlInit()
        return int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:
        return 0


def names() -> list[str]:
    return [
        str(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(i))) for i in range(count())
    ]


def sample() -> list[GpuSample]:
    """One sample a GPU. NVML's milliwatts become watts, its percent a share."""
    return [_sample(i) for i in range(count())]


def _sample(index: int) -> GpuSample:
    card = pynvml.nvmlDeviceGetHandleByIndex(index)

    def read(get: Callable[..., Any], *more: Any) -> Any:
        try:
            return get(card, *more)
        except pynvml.NVMLError:
            return None

    power_mw = read(pynvml.nvmlDeviceGetPowerUsage)
    memory = read(pynvml.nvmlDeviceGetMemoryInfo)
    busy = read(pynvml.nvmlDeviceGetUtilizationRates)
    return GpuSample(
        t_ns=time.monotonic_ns(),
        gpu=index,
        sm_clock_mhz=read(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM),
        memory_clock_mhz=read(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_MEM),
        power_w=None if power_mw is None else power_mw / 1000,
        temperature_c=read(pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU),
        memory_used_bytes=None if memory is None else int(memory.used),
        busy_frac=None if busy is None else busy.gpu / 100,
        throttle_reasons=read(pynvml.nvmlDeviceGetCurrentClocksEventReasons),
    )
