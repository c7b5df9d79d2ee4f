"""Every row of the catalogue has its test."""

import re
from pathlib import Path


def test_each_of_the_21_failure_modes_has_a_test() -> None:
    code = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert sorted(map(int, re.findall(r"^def test_(\d\d)_", code, re.M))) == list(range(1, 22))
