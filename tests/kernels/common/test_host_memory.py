"""Host memory by its kind: allocated, pinned and freed."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.base.errors import FieldError
from kernels.common import host_memory
from tests.kernels.cuda import install


def test_pageable_memory_lives_until_it_is_closed() -> None:
    memory = host_memory.HostMemory("pageable", 10_000)
    assert memory.bytes.shape == (10_000,)
    assert memory.bytes.dtype == np.uint8
    assert memory.pointer % host_memory.HUGE_PAGE == 0
    memory.bytes[:] = 7
    assert int(memory.bytes.sum()) == 70_000
    memory.close()
    memory.close()
    assert set(memory.seconds) == {"allocate", "free"}
    assert min(memory.seconds.values()) > 0


def test_registered_memory_is_unregistered_before_it_is_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = install(monkeypatch)
    memory = host_memory.HostMemory("registered", 5000)
    pointer = memory.pointer
    memory.close()
    assert fake.calls == [("cudaHostRegister", pointer), ("cudaHostUnregister", pointer)]
    assert set(memory.seconds) == {"allocate", "register", "free"}


def test_memory_without_huge_pages_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    monkeypatch.setattr(host_memory, "huge_bytes", lambda pointer: 0)
    with pytest.raises(host_memory.NoHugePages, match="0 of 4194304 B"):
        host_memory.HostMemory("registered_huge", 4 * 2**20)


def test_a_kernel_without_huge_pages_has_pages_of_the_base_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Mapping(mmap.mmap):
        def madvise(self, *_: Any) -> None:
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(mmap, "mmap", Mapping)
    install(monkeypatch)
    host_memory.HostMemory("pageable", 100).close()
    with pytest.raises(host_memory.NoHugePages, match="the kernel has none"):
        host_memory.HostMemory("registered_huge", 100)


def test_huge_pages_are_counted_in_the_mapping_of_the_address(tmp_path: Path) -> None:
    smaps = tmp_path / "smaps"
    smaps.write_text(
        "1000-3000 rw-p 00000000 00:00 0\nAnonHugePages:         0 kB\n"
        "3000-9000 rw-p 00000000 00:00 0\nRss: 8 kB\nAnonHugePages:      2048 kB\n"
    )
    assert host_memory.huge_bytes(0x3000, smaps) == 2048 * 1024
    assert host_memory.huge_bytes(0x2FFF, smaps) == 0
    assert host_memory.huge_bytes(0xFFFF, smaps) == 0


@pytest.mark.parametrize(("kind", "size"), [("swapped", 1), ("pageable", 0)])
def test_memory_of_no_kind_or_size_is_an_error(kind: str, size: int) -> None:
    with pytest.raises(FieldError):
        host_memory.HostMemory(kind, size)
