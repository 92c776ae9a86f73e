"""Lists of CPUs as Linux writes them."""

from __future__ import annotations

import pytest

from analysis.base.cpus import parse_cpu_list


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0\n", [0]), ("0-3,8", [0, 1, 2, 3, 8]), ("4,36\n", [4, 36]), ("7-7", [7]), ("\n", [])],
)
def test_a_list_of_cpus_is_read_in_its_order(text: str, cpus: list[int]) -> None:
    assert parse_cpu_list(text) == cpus
