"""Native programs that drive a variant's allocator without a GPU."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.compiled import object_file, program
from tests.kernels.phases.modules import STUDY

HERE = Path(__file__).parent


def native(
    name: str, source: str, *flags: str, variant: str = "p4_final", folder: Path = STUDY.folder
) -> Path:
    """A program of this folder over a variant of another, as the host's compiler makes it."""
    flags = ("-std=c++17", "-O1", "-pthread", f"-I{folder.parent / 'lib'}", *flags)
    # Macros are for the program, so programs share the variant.
    shared = [flag for flag in flags if not flag.startswith("-D")]
    sources = [HERE / source, object_file(folder / f"{variant}.cpp", folder, shared)]
    return program(f"allocator-{name}", sources, folder, flags)


def ran(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)
