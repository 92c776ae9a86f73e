"""The list of faults is in step with the code, and the tests find each of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from analysis import ROOT
from tests.faults import Fault, read_faults

FAULTS = read_faults()


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_entry_is_in_step_with_the_code(fault: Fault) -> None:
    text = (ROOT / fault.where).read_bytes().decode()
    assert not fault.where.startswith("tests/")
    assert text.count(fault.old) == 1 and fault.old != fault.new
    file, _, test = fault.test.partition("::")
    name = test.partition("[")[0]
    assert file.startswith("tests/") and f"\ndef {name}(" in (ROOT / file).read_text()


def test_entries_differ() -> None:
    assert len({(one.where, one.old, one.new) for one in FAULTS}) == len(FAULTS)
    assert len(set(map(str, FAULTS))) == len(FAULTS)


@pytest.mark.exhaustive
def test_every_fault_is_found() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.faults"], cwd=ROOT, check=False)
    assert done.returncode == 0
