"""Samples engine, host and GPU in threads while a cell is in flight."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException

from harness.telemetry import gpu, host, metrics

HOST_HZ = 2.0


@dataclass(slots=True)
class Telemetry:
    """What was sampled during one cell.

    metric_rows: (t_ns, name, labels, value). scrapes: (t_ns, took_ns) of every read of /metrics.
    faults: what stopped a sampling thread before the cell ended.
    """

    metric_rows: list[tuple[int, str, str, float]] = field(default_factory=list)
    scrapes: list[tuple[int, int]] = field(default_factory=list)
    hosts: list[host.HostSample] = field(default_factory=list)
    gpus: list[gpu.GpuSample] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


class Sampler:
    """with Sampler(...) as sampler: the cell runs; sampler.telemetry holds the samples after.

    metrics_url: None for an engine without /metrics. pids: gives the engine's processes, asked
    anew at each sample since engines start helpers late. A scrape that fails is left out: a dead
    engine is the recorder's to notice.
    """

    def __init__(
        self, metrics_url: str | None, metrics_hz: float, pids: Callable[[], list[int]]
    ) -> None:
        self.telemetry = Telemetry()
        self._metrics_url = metrics_url
        self._metrics_hz = metrics_hz
        self._pids = pids
        self._stop = threading.Event()
        self._last: dict[tuple[str, str], float] = {}
        self._gpus = gpu.count()
        targets = [self._watch_host] + ([self._watch_engine] if metrics_url is not None else [])
        self._threads = [threading.Thread(target=self._guard, args=(t,)) for t in targets]

    def __enter__(self) -> "Sampler":
        self._scrape()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._last.clear()  # so that the last sample of a cell is kept whole
        self._scrape()

    def _guard(self, watch: Callable[[], None]) -> None:
        try:
            watch()
        except Exception as fault:  # it must not pass for a cell that was watched to its end
            self.telemetry.faults.append(f"{watch.__name__.strip('_')}: {fault!r}")

    def _watch_host(self) -> None:
        watched = host.Host()

        def take() -> None:
            self.telemetry.hosts.append(watched.sample(self._pids()))
            if self._gpus:
                self.telemetry.gpus.extend(gpu.sample())

        self._loop(HOST_HZ, take)

    def _watch_engine(self) -> None:
        self._loop(self._metrics_hz, self._scrape)

    def _loop(self, hz: float, take: Callable[[], None]) -> None:
        # Absolute deadlines: a slow sample must not stretch the period of those after it.
        due = time.monotonic() + 1 / hz
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            take()
            due = max(due + 1 / hz, time.monotonic())
        take()

    def _scrape(self) -> None:
        if self._metrics_url is None:
            return
        try:
            now = metrics.scrape(self._metrics_url)
        except (OSError, ValueError, HTTPException):
            return
        new = metrics.changed(self._last, now)
        self.telemetry.metric_rows += [
            (now.t_ns, name, labels, value) for (name, labels), value in new.items()
        ]
        self.telemetry.scrapes.append((now.t_ns, now.took_ns))
        self._last = now.values
