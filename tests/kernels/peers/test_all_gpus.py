"""Launches of several GPUs with kernels on the CPU: every byte that arrives, and failures."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from analysis.study import Variant
from analysis.toolchain.compile import defines
from tests.compiled import headers, kept, program, toolchain
from tests.kernels.peers.fake import PEERS

HERE = Path(__file__).parent
EMULATED = HERE / "emulated"
LAUNCH = re.compile(r"(\w+(?:<[^<>]*>)?)<<<(.+?), (.+?), 0, (\w+)>>>\((.*?)\);")
CONSTANTS = {**PEERS.constants, "held_mib": 1}
"""Fewer translations are held, so that order matters in small pools, too."""


def for_the_cpu(study: Path, source: str) -> Path:
    """A folder with a variant's source and the headers of `study`, whose kernels a host's compiler
    takes."""

    def fill(folder: Path) -> None:
        for file in files:
            text = LAUNCH.sub(r"launch_emulated(\2, \3, \4, [=] { \1(\5); });", file.read_text())
            name = "variant.cpp" if file.name == source else file.name
            (folder / name).write_text(f'#include "kernels.h"\n{text}')

    files = [*headers(study), study / source]
    return kept(f"{source}.on_cpu", [*files, Path(__file__)], fill)


def ran(study: Path, variant: Variant) -> subprocess.CompletedProcess[str]:
    folder = for_the_cpu(study, variant.path.name)
    quiet = [f"-Wno-{what}" for what in ("unknown-pragmas", "attributes", "unused-parameter")]
    include = [f"-I{EMULATED}", f"-I{PEERS.folder}", f"-isystem{toolchain().include}"]
    flags = ["-std=c++17", "-O1", "-pthread", *include, *quiet, *variant.flags]
    sources = [HERE / "all_gpus.cpp", HERE / "several_gpus.cpp", folder / "variant.cpp"]
    made = program(f"peers-{variant.name}", sources, folder, [*flags, *defines(CONSTANTS)])
    return subprocess.run([made], capture_output=True, text=True, check=False, timeout=60)


TO_ONE = ["_divided", "_both", "", "_sorted", "_in_order", "_packed"]
"""Ways by which all GPUs bring rows of the host to one."""


@pytest.mark.long
@pytest.mark.parametrize("way", TO_ONE)
def test_every_byte_arrives_and_a_failure_comes_out(way: str) -> None:
    done = ran(PEERS.folder, PEERS.variant(f"four_links{way}"))
    assert done.returncode == 0, done.stdout + done.stderr
