"""The list of faults is in step with the code, and the tests find each of them."""

import subprocess
import sys

import pytest

from analysis import ROOT
from tests.faults import Fault, read_faults


def test_entries_are_in_step_with_the_code() -> None:
    faults = read_faults()
    assert [str(fault) for fault in faults if not is_in_step(fault)] == []
    assert len({(one.where, one.old, one.new) for one in faults}) == len(faults)
    assert len(set(map(str, faults))) == len(faults)


def is_in_step(fault: Fault) -> bool:
    """Whether the file is one of the product's, and has the text of the entry once."""
    where = ROOT / fault.where
    is_product = not fault.where.startswith("tests/") and where.exists()
    return is_product and where.read_bytes().decode().count(fault.old) == 1


@pytest.mark.exhaustive
def test_every_fault_is_found() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.faults"], cwd=ROOT, check=False)
    assert done.returncode == 0
