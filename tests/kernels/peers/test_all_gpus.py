"""Launches of several GPUs with kernels on the CPU: every byte that arrives, and failures."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from analysis.toolchain.compile import defines
from tests.compiled import headers, kept, program, toolchain
from tests.kernels.peers.fake import PEERS

HERE = Path(__file__).parent
EMULATED = HERE / "emulated"
LAUNCH = re.compile(r"(\w+(?:<[^<>]*>)?)<<<(.+?), (.+?), 0, (\w+)>>>\((.*?)\);")
CONSTANTS = {**PEERS.constants, "held_mib": 1}
"""Fewer translations are held, so that order matters in small pools, too."""


def for_the_cpu(source: Path) -> Path:
    """A folder with the variant `source` and the study's headers, whose kernels a host's compiler
    takes."""

    def fill(folder: Path) -> None:
        for file in files:
            text = LAUNCH.sub(r"launch_emulated(\2, \3, \4, [=] { \1(\5); });", file.read_text())
            is_kernel = "__global__" in text or file == source
            shim = '#include "kernels.h"\n' if is_kernel else ""
            (folder / file.with_suffix(".cpp" if file == source else ".h").name).write_text(
                shim + text
            )

    files = [*headers(PEERS.folder), source]
    return kept(f"{source.name}.on_cpu", [*files, str(LAUNCH)], fill)


def ran(folder: Path, name: str, flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    quiet = [f"-Wno-{what}" for what in ("unknown-pragmas", "attributes", "unused-parameter")]
    more = [f"-I{EMULATED}", f"-I{PEERS.folder}", f"-isystem{toolchain().include}", *quiet, *flags]
    options = ["-std=c++17", "-O1", "-pthread", *more]
    sources = [HERE / "all_gpus.cpp", HERE / "several_gpus.cpp", folder / f"{name}.cpp"]
    made = program(f"peers-{name}", sources, folder, [*options, *defines(CONSTANTS)])
    return subprocess.run([made], capture_output=True, text=True, check=False, timeout=60)


def sources_of_several() -> Iterator[str]:
    """The names of the sources by which all GPUs bring rows from the host to one."""
    for variant in PEERS.variants:
        text = variant.path.read_text()
        if '{"host", "all", "first", "gather", "none"}' in text:
            yield variant.path.stem


@pytest.mark.parametrize("name", sorted(set(sources_of_several())))
def test_every_byte_arrives_and_a_failure_comes_out(name: str) -> None:
    (source,) = PEERS.folder.glob(f"{name}.c*")
    done = ran(for_the_cpu(source), name)
    assert done.returncode == 0, done.stdout + done.stderr


FAULTS: Mapping[str, tuple[str, str, str]] = {
    "a row at the bound is nobody's": ("all_links_divided", "begin <= pair.x", "begin < pair.x"),
    "the first rows, in order": (*("all_links_in_order", " + of.destination", ""),),
    "the share alone is sorted": ("all_links_in_order", "whole(of).pairs", "of.pairs"),
    "only the own share's rows": ("all_links_divided", "whole(share)", "share"),
}


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_it_is_found(tmp_path: Path, fault: str) -> None:
    name, right, wrong = FAULTS[fault]
    text = (PEERS.folder / f"{name}.cu").read_text()
    assert right in text
    source = tmp_path / f"{name}.cu"
    source.write_text(text.replace(right, wrong))
    done = ran(for_the_cpu(source), name)
    assert done.returncode != 0
    assert "differs" in done.stdout
