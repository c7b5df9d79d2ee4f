"""Samples of the machine and of the engine's processes."""

import time
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class HostSample:
    """Shares are 0 to 1, since the sample before, one a core. Engine values: None without pids."""

    t_ns: int
    core_busy_frac: list[float]
    core_steal_frac: list[float]
    memory_used_bytes: int
    engine_rss_bytes: int | None
    engine_cpu_s: float | None


def sample(engine_pids: list[int]) -> HostSample:
    per_core = psutil.cpu_times_percent(percpu=True)
    rss_bytes, cpu_s = _engine(engine_pids)
    return HostSample(
        t_ns=time.monotonic_ns(),
        core_busy_frac=[round(1 - (c.idle + getattr(c, "iowait", 0.0)) / 100, 4) for c in per_core],
        core_steal_frac=[round(getattr(c, "steal", 0.0) / 100, 4) for c in per_core],
        memory_used_bytes=psutil.virtual_memory().used,
        engine_rss_bytes=rss_bytes,
        engine_cpu_s=cpu_s,
    )


def _engine(pids: list[int]) -> tuple[int | None, float | None]:
    if not pids:
        return None, None
    rss_bytes, cpu_s = 0, 0.0
    for pid in pids:
        try:
            process = psutil.Process(pid)
            rss_bytes += process.memory_info().rss
            times = process.cpu_times()
            cpu_s += times.user + times.system
        except psutil.Error:  # it ended between the listing and the look
            continue
    return rss_bytes, round(cpu_s, 2)
