"""Variants of allocators over simulated memory: as Python modules, and in a native driver."""

import subprocess
from pathlib import Path
from typing import Any

from analysis.toolchain.modules import load_python
from tests.compiled import QUICK, module, program
from tests.repository import STUDIES

STUDY = STUDIES["phases"]
workload: Any = load_python(STUDY, "workload")
LIB = STUDY.folder.parent / "lib"
MIB, GIB = 2**20, 2**30


def built(name: str) -> Any:
    """The module of a variant, optimised if it replays long tapes."""
    optimisation = "-O1" if name in ("p4_final", "p5_dropin") else QUICK
    return module(STUDY, STUDY.variant(name), optimisation=optimisation, of_bindings=QUICK)


class Host:
    """An allocator of a variant, over devices that have `capacity` bytes."""

    def __init__(self, name: str, capacity: int = 79 * GIB) -> None:
        self.module = built(name)
        self.source = self.module.HostSource(capacity)
        self.allocator = self.module.Allocator(self.source)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.allocator, name)

    def replay(self, tapes: Any, streams: int = 1) -> Any:
        """A runner of the tapes."""
        return self.module.Runner(self.allocator, tapes, list(range(streams)))


def drive(variant: str, *words: str, sanitizer: str = "", limit_s: int = 300) -> None:
    """Run drive.cpp with a variant. AssertionError if it finds a fault."""
    flags = ["-std=c++17", "-O1", "-pthread", f"-I{LIB}"]
    flags += [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"] if sanitizer else []
    # In one source with the driver: most of either is the same headers.
    flags += ["-include", str(STUDY.folder / f"{variant}.cpp")]
    driver = program("drive", [Path(__file__).with_name("drive.cpp")], STUDY.folder, flags)
    done = subprocess.run(
        [driver, *words], capture_output=True, text=True, check=False, timeout=limit_s
    )
    assert done.returncode == 0, done.stdout + done.stderr
