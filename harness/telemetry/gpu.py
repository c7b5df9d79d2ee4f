"""Samples of NVIDIA GPUs through NVML. On a machine without one there is nothing to sample."""

import time
from dataclasses import dataclass

import pynvml


@dataclass(frozen=True, slots=True)
class GpuSample:
    t_ns: int
    gpu: int
    sm_clock_mhz: int
    memory_clock_mhz: int
    power_w: float
    temperature_c: int
    memory_used_bytes: int
    busy_frac: float
    throttle_reasons: int


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
    gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
    return GpuSample(
        t_ns=time.monotonic_ns(),
        gpu=index,
        sm_clock_mhz=pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM),
        memory_clock_mhz=pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_MEM),
        power_w=pynvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
        temperature_c=pynvml.nvmlDeviceGetTemperature(gpu, pynvml.NVML_TEMPERATURE_GPU),
        memory_used_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(gpu).used),
        busy_frac=pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100,
        throttle_reasons=pynvml.nvmlDeviceGetCurrentClocksEventReasons(gpu),
    )
