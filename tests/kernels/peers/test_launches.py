"""Launches of several GPUs with kernels on the CPU: every byte that arrives, and failures."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from analysis.study import Variant
from analysis.toolchain.compile import defines
from tests.compiled import headers, kept, program, toolchain
from tests.kernels.stubbed import LATE, runtime
from tests.repository import STUDIES

HERE = Path(__file__).parent
PEERS = STUDIES["peers"]
LAUNCH = re.compile(r"(\w+(?:<[^<>]*>)?)<<<(.+?), (.+?), 0, (\w+)>>>\((.*?)\);")
WAYS = ("_divided", "_both", "", "_sorted", "_in_order", "_packed")
"""Ways by which all GPUs bring rows of the host to one."""


def for_the_cpu(variant: Variant) -> Path:
    """A folder with the variant's source and the study's headers, whose kernels a host's compiler
    takes."""
    files = [*headers(PEERS.folder), variant.path]

    def fill(folder: Path) -> None:
        for file in files:
            text = LAUNCH.sub(r"launch_emulated(\2, \3, \4, [=] { \1(\5); });", file.read_text())
            name = "variant.cpp" if file == variant.path else file.name
            (folder / name).write_text(f'#include "kernels.h"\n{text}')

    return kept(f"{variant.name}.on_cpu", [*files, Path(__file__)], fill)


@pytest.mark.parametrize(
    "name",
    ["copy_engine", *(pytest.param(f"four_links{way}", marks=pytest.mark.long) for way in WAYS)],
)
def test_every_byte_arrives_and_a_failure_comes_out(name: str) -> None:
    variant = PEERS.variant(name)
    folder = for_the_cpu(variant)
    quiet = [f"-Wno-{what}" for what in ("unknown-pragmas", "attributes", "unused-parameter")]
    include = [f"-I{HERE / 'emulated'}", f"-I{PEERS.folder}", f"-isystem{toolchain().include}"]
    flags = ["-std=c++17", "-O1", "-pthread", *include, *quiet, *variant.flags]
    # Fewer translations are held, so that order matters in small pools, too.
    flags += defines({**PEERS.constants, "held_mib": 1})
    sources = [HERE / "launches.cpp", runtime(LATE), folder / "variant.cpp"]
    made = program(f"peers-{name}", sources, folder, flags)
    done = subprocess.run([made], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
