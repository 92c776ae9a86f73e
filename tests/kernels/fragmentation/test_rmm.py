"""RMM's pool as a variant: replays, for which one stream needs no GPU, and what is built without
RMM's headers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.compiled import module, toolchain
from tests.kernels.fragmentation.replays import STUDY, assert_memory_is_told, replay

VARIANT = STUDY.variant("rmm_pool")

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


def test_without_rmm_it_is_built_and_says_so_when_used(tmp_path: Path) -> None:
    (tmp_path / "tried.cpp").write_text(TRIED)
    includes = [f"-I{STUDY.folder.parent / name}" for name in ("fragmentation", "lib")]
    command = [toolchain().cxx, "-std=c++20", *includes, str(tmp_path / "tried.cpp")]
    subprocess.run([*command, "-o", str(tmp_path / "tried")], check=True)
    said = subprocess.run(tmp_path / "tried", capture_output=True, text=True, check=True).stdout
    assert said == "rmm_pool: built without RMM's headers\n"


def built() -> Any:
    return module(STUDY, VARIANT, optimisation="-O1")  # as the allocators, to share bindings


@pytest.mark.long
@pytest.mark.parametrize("case", [case["pattern"] for case in VARIANT.cases])
def test_its_replays_tell_of_memory_that_the_driver_gave(case: str) -> None:
    assert_memory_is_told(replay(built(), case))


@pytest.mark.long
def test_it_refuses_a_limit() -> None:
    operation = replay(built(), "growing_batch")
    with pytest.raises(ValueError, match=r"^limit: .*, got rmm_pool$"):
        operation._allocator.set_limit(0, 2**20)


@pytest.mark.long
def test_no_memory_left_is_a_fault_of_the_cell() -> None:
    operation = replay(built(), "growing_batch", 2**27)
    operation.launch(0)
    assert "the driver has no" in operation.check()
