import time

from harness.load.alarm import Alarm


def test_it_waits_for_an_absolute_time_and_not_for_a_past_one() -> None:
    alarm = Alarm()
    due_ns = time.monotonic_ns() + 20_000_000
    alarm.wait_until(due_ns)
    assert time.monotonic_ns() >= due_ns
    alarm.wait_until(due_ns)
    alarm.wait_until(time.monotonic_ns() + 1_000_000)
    alarm.close()
