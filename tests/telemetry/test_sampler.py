"""/metrics: what is kept of it; and that a cell's samples begin and end whole."""

import http.server
import os
import threading
import time
from collections import namedtuple
from collections.abc import Iterator

import pytest

from harness.telemetry import host, machine, metrics
from harness.telemetry.sampler import Sampler

TEXT = """\
# HELP engine_running Requests.
# TYPE engine_running gauge
engine_running{model_name="m",engine="0"} 3.0
# TYPE engine_queue_seconds histogram
engine_queue_seconds_bucket{le="1.0"} 2.0
engine_queue_seconds_bucket{le="+Inf"} 2.0
engine_queue_seconds_count 2.0
engine_queue_seconds_sum 0.5
# TYPE engine_unknown gauge
engine_unknown NaN
# TYPE python_info gauge
python_info{version="3"} 1.0
# TYPE engine_tokens counter
engine_tokens_total{b="2",a="1"} 7.0
engine_tokens_created{b="2",a="1"} 1.7e9
"""
VALUES = {
    ("engine_running", "engine=0"): 3.0,
    ("engine_queue_seconds_count", ""): 2.0,
    ("engine_queue_seconds_sum", ""): 0.5,
    ("engine_tokens_total", "a=1,b=2"): 7.0,
}


def test_parse_keeps_sums_counts_and_gauges() -> None:
    assert metrics.parse(TEXT) == VALUES


@pytest.fixture
def counting_url() -> Iterator[str]:
    """A server whose one metric rises by 1 with every read, beside one that stays."""
    reads = iter(range(1, 10_000))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = f"rises {next(reads)}\nstays 5\n".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/metrics"
    server.shutdown()


def test_first_and_last_sample_are_whole_and_the_rest_are_changes(counting_url: str) -> None:
    with Sampler(counting_url, 20.0, lambda: [os.getpid()]) as sampler:
        time.sleep(0.5)
    got = sampler.telemetry
    stays = [row for row in got.metric_rows if row[1] == "stays"]
    rises = [row[3] for row in got.metric_rows if row[1] == "rises"]
    assert len(stays) == 2
    assert rises == [float(i) for i in range(1, len(rises) + 1)]
    assert len(got.scrapes) == len(rises) >= 6
    assert stays[0][0] == got.scrapes[0][0] and stays[1][0] == got.scrapes[-1][0]
    assert got.hosts and got.hosts[0].engine_rss_bytes


def test_an_engine_that_does_not_answer_leaves_no_rows() -> None:
    with Sampler("http://127.0.0.1:9/metrics", 20.0, lambda: []) as sampler:
        time.sleep(0.1)
    assert sampler.telemetry.metric_rows == []
    assert sampler.telemetry.hosts[0].engine_cpu_s is None
    assert sampler.telemetry.faults == []


def test_shares_are_of_the_time_that_passed_also_below_a_second() -> None:
    Times = namedtuple("Times", "user system idle iowait steal")
    before = Times(user=10.0, system=5.0, idle=100.0, iowait=1.0, steal=2.0)
    # Half a second later: 0.2 s user, 0.05 s system, 0.15 s idle, 0.05 s waiting, 0.05 s stolen.
    now = Times(user=10.2, system=5.05, idle=100.15, iowait=1.05, steal=2.05)
    assert host.core_shares(before, now) == (0.6, 0.1)
    assert host.core_shares(now, now) == (0.0, 0.0)


def test_a_sampling_thread_that_fails_is_noted() -> None:
    def broken() -> list[int]:
        raise RuntimeError("no such process table")

    with Sampler(None, 20.0, broken) as sampler:
        time.sleep(0.6)
    assert sampler.telemetry.faults == ["watch_host: RuntimeError('no such process table')"]


def test_host_sample_has_a_share_for_every_core() -> None:
    watched = host.Host()
    time.sleep(0.05)
    sample = watched.sample([os.getpid()])
    assert len(sample.core_busy_frac) == len(sample.core_steal_frac) == os.cpu_count()
    assert sample.memory_used_bytes > 0 and sample.engine_cpu_s is not None


def test_a_machine_is_described_without_its_name() -> None:
    described = machine.describe()
    assert described["cores"] == os.cpu_count()
    assert os.uname().nodename not in str(described).split()
