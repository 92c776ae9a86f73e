"""Load the libraries that measuring imports into the page cache.

python -m analysis.measure.read_ahead
"""

from __future__ import annotations

import importlib
import os
from contextlib import suppress
from pathlib import Path

import psutil

from analysis.base.cli import fail_in_one_line
from analysis.measure.run import ROUND_MODULES, imported
from analysis.study.config import load_config

LARGE_LIBRARY_BYTES = 32 * 2**20


def read_libraries() -> None:
    """Have the system read this process's large libraries as a whole. CUDA loads kernels lazily, so
    importing a library does not read all of it."""
    files = {mapped.path for mapped in psutil.Process().memory_maps() if ".so" in mapped.path}
    for file in map(Path, files):
        if file.is_file() and file.stat().st_size >= LARGE_LIBRARY_BYTES:
            with file.open("rb") as library:
                os.posix_fadvise(library.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


def main() -> None:
    studies = load_config({}).studies.values()
    of_studies = {name for study in studies for name in imported(study, study.variants)}
    for name in (*ROUND_MODULES, *sorted(of_studies)):
        with suppress(ImportError):  # not installed
            importlib.import_module(name)
    read_libraries()


if __name__ == "__main__":
    fail_in_one_line(main)
