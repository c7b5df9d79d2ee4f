"""Samples of the machine and of the engine's processes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psutil

KINDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


@dataclass(frozen=True, slots=True)
class HostSample:
    """Shares are 0 to 1, since the sample before, one a core. Engine values: None without pids."""

    t_ns: int
    core_busy_frac: list[float]
    core_steal_frac: list[float]
    memory_used_bytes: int
    engine_rss_bytes: int | None
    engine_cpu_s: float | None


class Host:
    """Takes samples; the first one's shares are since this object was made."""

    def __init__(self) -> None:
        self._before = psutil.cpu_times(percpu=True)

    def sample(self, engine_pids: list[int]) -> HostSample:
        now = psutil.cpu_times(percpu=True)
        shares = [core_shares(was, is_) for was, is_ in zip(self._before, now, strict=True)]
        self._before = now
        rss_bytes, cpu_s = _engine(engine_pids)
        return HostSample(
            t_ns=time.monotonic_ns(),
            core_busy_frac=[busy for busy, _ in shares],
            core_steal_frac=[steal for _, steal in shares],
            memory_used_bytes=psutil.virtual_memory().used,
            engine_rss_bytes=rss_bytes,
            engine_cpu_s=cpu_s,
        )


def core_shares(before: Any, now: Any) -> tuple[float, float]:
    """(busy, steal) of one core between two readings of its times, 0 to 1.

    Not psutil's cpu_times_percent: over less than a second it gives seconds, not shares.
    """
    spent = {kind: getattr(now, kind, 0.0) - getattr(before, kind, 0.0) for kind in KINDS}
    total = sum(spent.values())
    if total <= 0:  # no tick of the kernel's clock in between
        return 0.0, 0.0
    idle = spent["idle"] + spent["iowait"]
    return round(1 - idle / total, 4), round(spent["steal"] / total, 4)


def _engine(pids: Sequence[int]) -> tuple[int | None, float | None]:
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
