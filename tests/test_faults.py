"""The list of faults is in step with the code, and the tests find each of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from analysis import ROOT
from tests.faults import Fault, read_faults

FAULTS = read_faults()


def test_entries_are_in_step_with_the_code() -> None:
    assert [str(fault) for fault in FAULTS if not is_in_step(fault)] == []


def is_in_step(fault: Fault) -> bool:
    """Whether the file has the text of the entry once, and the test exists."""
    where = ROOT / fault.where
    if fault.where.startswith("tests/") or not where.exists() or fault.old == fault.new:
        return False
    file, _, test = fault.test.partition("::")
    defined = f"\ndef {test.partition('[')[0]}("
    is_test = file.startswith("tests/") and defined in (ROOT / file).read_text()
    return is_test and where.read_bytes().decode().count(fault.old) == 1


def test_entries_differ() -> None:
    assert len({(one.where, one.old, one.new) for one in FAULTS}) == len(FAULTS)
    assert len(set(map(str, FAULTS))) == len(FAULTS)


@pytest.mark.exhaustive
def test_every_fault_is_found() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.faults"], cwd=ROOT, check=False)
    assert done.returncode == 0
