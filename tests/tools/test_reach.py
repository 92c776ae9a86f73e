"""tools/reach.cu: size, warnings, fit, order of reads, outputs, and what memory it may allocate."""

import math
import re
import shutil
import subprocess
import sysconfig
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from analysis import ROOT
from analysis.base.limits import allocatable_bytes
from tests.compiled import ARCH, run, toolchain
from tests.limited import HUGE, SYSTEMS
from tests.tools.reach import SOURCE, TOOLS, emulated, figures, fitted, on_host, output

MIB, GIB = 2**20, 2**30
FIGURES = re.findall(r'put\("(\w+)", "([^"]+)"', SOURCE.read_text())
"""Key and label of each figure."""
KEYS = {*dict(FIGURES), "gpu", "advice", "pools"}
WARNINGS = "-Werror=all-warnings -Wno-deprecated-gpu-targets -Xcompiler=-Wall,-Wextra,-Werror"


@pytest.mark.parametrize("arch", [ARCH, pytest.param("all", marks=pytest.mark.long)])
@pytest.mark.parametrize("source", sorted({*TOOLS.glob("*.cu")} - {SOURCE}), ids=lambda of: of.stem)
def test_every_tool_compiles_without_warnings(tmp_path: Path, source: Path, arch: str) -> None:
    nvcc = [str(toolchain().nvcc), "-ccbin", toolchain().cxx, f"-arch={arch}", str(source)]
    kind = "-ptx" if arch == ARCH else "-c"  # by -ptx, no host compiler warns
    run(*nvcc, *WARNINGS.split(), kind, "-o", str(tmp_path / "tool.o"))


@pytest.mark.parametrize("arch", [ARCH, pytest.param("all", marks=pytest.mark.long)])
def test_the_page_compiles_it_with_the_compiler_from_pypi(tmp_path: Path, arch: str) -> None:
    """Which has no lib64, where its linker looks for libraries."""
    nvcc = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin", "nvcc")
    if not nvcc.is_file():
        pytest.skip("this environment is not the locked one")
    page = (ROOT / "docs" / "test_my_machine.md").read_text()
    [command] = re.findall(r'^"\$nvcc" (.*) && \./a\.out$', page, re.MULTILINE)
    script = f'nvcc={nvcc}; "$nvcc" -ccbin {toolchain().cxx} -arch={arch} {command} {WARNINGS}'
    shutil.copy(SOURCE, tmp_path)
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True)
    assert (tmp_path / "a.out").exists()


@pytest.mark.parametrize("largest", [4 * GIB, 16 * GIB, 40 * GIB])
@pytest.mark.parametrize(
    ("reach", "walk_s", "doubling_s"),
    [(566 * MIB, 20e-9, 3e-9), (130 * MIB, 30e-9, 0), (1000 * MIB, 60e-9, 10e-9)],
)
def test_the_fit_finds_what_made_the_curve(
    reach: float, walk_s: float, doubling_s: float, largest: float
) -> None:
    """Of reads over a link that takes 2.5 ns. A curve that ends early has no fit."""
    curve = [(256 * MIB * 2 ** (half / 2), 0.0) for half in range(40)]
    for place, (pool, _) in enumerate(curve):
        walk = walk_s + doubling_s * math.log2(pool / reach)
        curve[place] = pool, max(2.5e-9, (1 - reach / pool) * walk)
    found = fitted([one for one in curve if one[0] <= largest], 2.5e-9)
    assert found == pytest.approx([reach, walk_s, doubling_s, 0], rel=0.02, abs=4e-3)
    early = fitted([one for one in curve if one[0] <= 2 * reach], 2.5e-9)
    assert all(map(math.isnan, early))


@pytest.mark.parametrize(
    ("places", "stride", "row", "lines"),
    [(400_000, 656, 656, 1), (2**19, 128, 128, 1), (9_000, 65_536, 128, 32)],
)
def test_reads_come_once_and_in_no_order(places: int, stride: int, row: int, lines: int) -> None:
    first = on_host("order", places, stride, row, lines, 0)
    then = on_host("order", places, stride, row, lines, len(first))
    total = places * lines
    assert max(Counter(first + then).values()) <= math.ceil(2 * len(first) / total)
    assert min(first) >= 0
    assert max(first) <= places * stride - row
    assert all(offset % 16 == 0 for offset in first)
    assert sum(a < b for a, b in pairwise(first)) == pytest.approx(len(first) / 2, rel=0.02)


def probed(**gpu: float) -> Any:
    return figures(emulated("reach"), "--pool-gib", "2", **gpu)


@pytest.mark.parametrize("covers", [4096, 65536, 2 * MIB])
def test_the_object_has_every_key_in_si_units(covers: int) -> None:
    held = 256 * MIB / covers
    found = probed(HELD=held, COVERS=covers, WALK=20e-9, DOUBLING=3e-9, LINK=50e9)
    assert set(found) == KEYS
    assert found["held"] == pytest.approx(held, rel=0.02)
    assert found["covers_bytes"] == covers
    assert found["reach_bytes"] == pytest.approx(found["held"] * covers)
    assert found["walks_per_s"] == pytest.approx(1 / 26e-9, rel=0.03)
    assert found["walk_s"] + 2 * found["doubling_s"] == pytest.approx(26e-9, rel=0.03)
    assert found["pool_bytes"] == 2 * GIB
    for pool, measured, predicted, reads in found["pools"]:
        assert predicted == pytest.approx(measured, rel=0.03)
        assert 256 * MIB <= pool <= 2 * GIB
        assert reads > 0


def test_a_gpu_without_a_limit_is_not_given_one() -> None:
    found = probed(HELD=1e9)
    unknown = {"held", "covers_bytes", "reach_bytes", "walks_per_s", "walk_s", "doubling_s"}
    assert {key for key, value in found.items() if value is None} == unknown | {"fit_error"}
    assert found["advice"] == "Up to 2 GiB, the link limits reads; page walks cannot be seen."
    shown = output(emulated("reach"), "--pool-gib", "2", "--row-bytes", "512", HELD=1e9).stdout
    assert "translations held    unknown" in shown and "rows gathered            512 B" in shown
    assert shown.count("\n") == 23


def test_a_system_that_refuses_memory_gets_a_smaller_pool() -> None:
    assert probed(PINNABLE=0.6 * GIB)["pool_bytes"] == 0.5 * GIB
    refused = output(emulated("reach"), "--pool-gib", "2", PINNABLE=1000)
    assert refused.returncode == 1
    assert refused.stderr == "error: 256 MiB of host memory: refused\n"


POOL = "--pool-gib: expected a number of GiB from 0.25 to 1000000, got"
ROW = "--row-bytes: expected a multiple of 16 from 128 to 4096, got"
OPTIONS = "argument: expected --json, --pool-gib N or --row-bytes N, got"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        *((["--pool-gib", word], f"{POOL} '{word}'") for word in ("-1", "nan", "2x", "9" * 400)),
        *((["--row-bytes", word], f"{ROW} '{word}'") for word in ("abc", "64", "4112", "200")),
        *(([word], f"{OPTIONS} '{word}'") for word in ("8", "", "--pool-gib=2")),
        (["--json", "--pool-gib"], f"{POOL} nothing"),
        (["--row-bytes"], f"{ROW} nothing"),
    ],
)
def test_a_mistaken_argument_is_one_line(words: list[str], said: str) -> None:
    refused = output(emulated("reach"), *words)
    assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", f"error: {said}\n")


@pytest.mark.parametrize("words", ["pin --gib", "gather --row-bytes 7", "copy_pieces -x"])
def test_a_mistaken_argument_of_a_recipe_is_one_line(words: str) -> None:
    name, *arguments = words.split()
    refused = output(emulated(name), *arguments)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert re.fullmatch(r"error: \w+: expected .* got '.*'\n", refused.stderr)


def test_pages_explain_every_line_and_key() -> None:
    page = (ROOT / "docs" / "test_my_machine.md").read_text()
    contract = (ROOT / "docs" / "contract.md").read_text().partition("## The probe")[2]
    assert len(FIGURES) == 11
    for key, label in FIGURES:
        assert f"| {label} |" in page
        assert f"`{key}`" in contract
        assert all(label in text.read_text() for text in TOOLS.glob("reach/*/reach.txt"))


def test_the_header_and_the_probe_have_the_same_text() -> None:
    text = (ROOT / "kernels/common/memory_limit.h").read_text()
    assert text[text.index("namespace memory_limit {") :] in SOURCE.read_text()


@pytest.mark.parametrize("name", SYSTEMS)
def test_all_copies_find_the_same(tmp_path: Path, name: str) -> None:
    assert on_host("free", tmp_path)[0] > HUGE  # nothing known is no limit
    SYSTEMS[name].write(tmp_path)
    assert [*on_host("free", tmp_path), allocatable_bytes(tmp_path)] == 2 * [SYSTEMS[name].left]
