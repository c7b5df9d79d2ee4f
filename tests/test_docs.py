"""The words a reader is given must be those of the code."""

import re
from pathlib import Path

from harness import bench

ROOT = Path(__file__).parents[1]


def test_every_reason_of_a_verdict_is_on_the_method_page() -> None:
    files = [*(ROOT / "harness" / "recording").glob("checks_*.py"), ROOT / "harness" / "session.py"]
    code = "".join(path.read_text() for path in files)
    reasons = set(re.findall(r'f?"([a-z]+_?[a-z]+): ', code))
    listed = set(re.findall(r"^\| `([a-z_]+)` \|", (ROOT / "docs/method.md").read_text(), re.M))
    assert {"errors", "warm_cache", "minimums", "client_busy", "wrong_answer"} <= reasons
    assert reasons == listed


def test_every_make_target_says_what_it_does() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^\.PHONY: (.*)$", text, re.M)[0].split())
    said = set(re.findall(r"^([a-z-]+):.*## \S", text, re.M))
    assert targets - said == {"test-tools"}  # a step of `test`, not for people


def test_every_make_target_that_the_readme_names_is_there() -> None:
    text = (ROOT / "README.md").read_text()
    named = set(re.findall(r"(?:`|^|\s)make ([a-z-]+)", text, re.M))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert named and named <= targets


def test_the_bench_table_is_made_from_the_result() -> None:
    middle = {
        "chunks_per_s": 19_900.0,
        "core_frac": 0.42,
        "shared_frac": 0.006,
        "kernel_p50_ms": 0.005,
        "kernel_p99_ms": 0.02,
        "kernel_p99_9_ms": 7.1,
        "user_p50_ms": 0.4,
        "user_p99_ms": 4.9,
        "user_p99_9_ms": 48.0,
    }
    result = {
        "median": middle,
        "repeats": [{"kernel_p99_ms": 0.019}, {"kernel_p99_ms": 0.029}],
        "streams": 400,
        "chunks_per_s_each": 50,
        "seconds": 10.0,
    }
    text = bench.with_table("a\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nb", result)
    assert "| kernel receive time (recorded) | 0.005 | 0.020 | 7.100 |" in text
    assert "the worst of which the recorded p99 was 0.029 ms" in text
    assert "old" not in text and text.startswith("a\n") and text.endswith("\nb")
