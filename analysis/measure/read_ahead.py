"""Load the libraries that measuring imports into the page cache, and touch the memory it needs.

python -m analysis.measure.read_ahead
"""

from __future__ import annotations

import importlib
import mmap
import time
from contextlib import suppress
from typing import Final

import numpy as np

from analysis.base.cli import fail_in_one_line
from analysis.base.gpu import GpuError, open_gpus
from analysis.measure.run import ROUND_MODULES, imported
from analysis.study.config import load_config

POOL_BYTES: Final = 40 * 2**30
"""The `largest_pool_mib` that studies set. A larger pool is touched in part."""
MAX_TOUCH_S: Final = 30.0
"""Time limit for touching memory; compiling everything takes longer."""
PIECE_PAGES: Final = 2**14
"""Pages that are touched between two looks at the clock."""


def touch_memory(size: int) -> None:
    """Write to every page of `size` bytes of new memory, for at most MAX_TOUCH_S, and free them.

    In a new virtual machine, the first access to memory takes several times as long as later ones,
    because the host provides the page then. One thread only: a core that waits for memory compiles
    nothing.
    """
    until = time.monotonic() + MAX_TOUCH_S
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        with suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
        pages = np.frombuffer(memory, np.uint8)[:: mmap.PAGESIZE]
        for start in range(0, len(pages), PIECE_PAGES):
            if time.monotonic() > until:
                break
            pages[start : start + PIECE_PAGES] = 1
        del pages  # a mapping that is still referred to cannot be closed


def main() -> None:
    config = load_config({})
    of_studies = {
        name for study in config.studies.values() for name in imported(study, study.variants)
    }
    for name in (*ROUND_MODULES, *sorted(of_studies)):
        with suppress(ImportError):  # not installed
            importlib.import_module(name)
    with suppress(GpuError), open_gpus(config.gpus):  # without a GPU, no pool is made
        from analysis.measure.memory import largest_pool

        touch_memory(min(POOL_BYTES, largest_pool()))


if __name__ == "__main__":
    fail_in_one_line(main)
