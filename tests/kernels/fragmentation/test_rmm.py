"""RMM's pool as a variant: replays where it is installed, for which one stream needs no GPU, and a
module that says what it lacks where it is not."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from allocator.workload import Told
from analysis.modules import load_python
from analysis.toolchain.packages import PACKAGES
from tests.compiled import QUICK, module, toolchain
from tests.repository import STUDIES

STUDY = STUDIES["fragmentation"]
WORKLOAD = load_python(STUDY, "workload")
VARIANT = STUDY.variant("rmm_pool")
IS_INSTALLED = PACKAGES["rmm"].root is not None

TRIED = """\
#include "rmm_pool.cpp"
#include <cstdio>
#include "host_source.h"
int main() {
  HostSource source(1 << 20);
  try {
    make_allocator(source);
  } catch (const std::runtime_error& error) {
    std::puts(error.what());
  }
}
"""


@pytest.mark.skipif(IS_INSTALLED, reason="RMM is installed")
def test_without_rmm_it_is_built_and_says_so_when_used(tmp_path: Path) -> None:
    (tmp_path / "tried.cpp").write_text(TRIED)
    includes = [f"-I{STUDIES[name].folder}" for name in ("fragmentation", "allocator")]
    command = [toolchain().cxx, "-std=c++20", *includes, str(tmp_path / "tried.cpp")]
    subprocess.run([*command, "-o", str(tmp_path / "tried")], check=True)
    said = subprocess.run(tmp_path / "tried", capture_output=True, text=True, check=True).stdout
    assert said == "rmm_pool: built without RMM's headers\n"


def replay(pattern: str, capacity: int) -> Any:
    built = module(STUDY, VARIANT, optimisation=QUICK)
    told = Told.CALLS | Told.MEMORY
    return WORKLOAD.Replay(
        built, WORKLOAD.KNOWN[pattern](), told, source=lambda: built.HostSource(capacity)
    )


@pytest.mark.skipif(not IS_INSTALLED, reason="RMM is not installed")
@pytest.mark.parametrize("case", [case["pattern"] for case in VARIANT.cases])
def test_its_replays_tell_of_memory_that_the_driver_gave(case: str) -> None:
    operation = replay(case, 139 * 2**30)
    operation.launch(0)
    assert operation.check() is None
    samples = operation.own_samples(0, 1)
    assert set(samples) == set(STUDY.metrics)
    assert 0 < samples["requested"][0] <= samples["active"][0] <= samples["reserved"][0]
    assert samples["driver_calls"] == [0]


@pytest.mark.skipif(not IS_INSTALLED, reason="RMM is not installed")
def test_no_memory_left_is_a_fault_of_the_cell() -> None:
    operation = replay("growing_batch", 2**27)
    operation.launch(0)
    assert "the driver has no" in operation.check()
