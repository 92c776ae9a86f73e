"""Allocators on a GPU: reuse across streams, the real driver, PyTorch."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from analysis.study import Case, Study, Variant
from analysis.toolchain.arch import resolve_arch
from analysis.toolchain.compilers import find_toolchain
from analysis.toolchain.modules import load_python
from tests.compiled import gpu_module, gpu_samples
from tests.kernels.phases.modules import LIB
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu

STUDY, MAPPED = STUDIES["phases"], STUDIES["fragmentation"]
WORKLOAD = load_python(STUDY, "workload")
MIB = 2**20


def canary(out: Path, variant: Variant, folder: Path) -> subprocess.CompletedProcess[str]:
    """A run of gpu.cu with a variant as it is in `folder`, built for this machine's GPU."""
    toolchain, sm = find_toolchain(), resolve_arch("auto", [0]).removeprefix("sm_")
    command = [str(toolchain.nvcc), "-std=c++17", "-O2", *variant.flags, "-o", str(out / "gpu")]
    command += [f"-gencode=arch=compute_{sm},code=sm_{sm}"]
    command += [f"-L{path}" for path in toolchain.libraries]
    command += [f"-I{path}" for path in (folder, folder.parent / "lib", LIB)]
    sources = Path(__file__).with_name("gpu.cu"), folder / variant.path.name
    subprocess.run([*command, *map(str, sources)], check=True)
    return subprocess.run([out / "gpu", "10000"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("study", "name"),
    [
        *((STUDY, name) for name in ("p4_final", "p5_streams", "p5_dropin")),
        *((MAPPED, name) for name in ("p6_mapped", "p7_ordered")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_stream_reads_memory_that_another_has_overwritten(
    tmp_path: Path, study: Study, name: str
) -> None:
    done = canary(tmp_path, study.variant(name), study.folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_canary_finds_an_allocator_that_does_not_wait(tmp_path: Path) -> None:
    copy = tmp_path / LIB.parent.name
    shutil.copytree(LIB.parent, copy, ignore=shutil.ignore_patterns("traces", "__pycache__"))
    file = copy / "phases" / "p4_final.cpp"
    right, wrong = "if (!block->users.empty()) {", "if (false) {"
    assert file.read_text().count(right) == 1
    file.write_text(file.read_text().replace(right, wrong))
    done = canary(tmp_path, STUDY.variant("p4_final"), file.parent)
    assert done.returncode == 1 and "words changed" in done.stdout, done.stdout + done.stderr


def runnable() -> list[Variant]:
    has_torch = importlib.util.find_spec("torch") is not None
    return [variant for variant in STUDY.variants if has_torch or "torch" not in variant.needs]


@pytest.mark.parametrize("variant", runnable(), ids=lambda variant: variant.name)
def test_every_variant_serves_its_cases(variant: Variant) -> None:
    """A first case of each way of calling it, checked and measured."""
    cases: dict[str, Case] = {}
    for case in variant.in_grid("default"):
        cases.setdefault(str(case["pattern"]).rpartition(".")[0], case)
    for case in cases.values():
        workload = WORKLOAD.Workload({}, np.random.default_rng(0))
        samples = gpu_samples(STUDY, workload, variant.name, case)
        assert set(samples) <= set(STUDY.metrics)
        assert 0 < samples["op_time"] < 0.1


def test_the_driver_gets_back_everything() -> None:
    from cuda.bindings import runtime as cudart

    from analysis.measure.memory import cuda

    module = gpu_module(STUDY, "p4_final")
    module.DriverSource()
    before, _ = cuda(cudart.cudaMemGetInfo())
    allocator = module.Allocator(module.DriverSource())
    held = [allocator.allocate(64 * MIB) for _ in range(8)]
    during, _ = cuda(cudart.cudaMemGetInfo())
    assert before - during >= 8 * 64 * MIB
    for pointer in held:
        allocator.free(pointer)
    allocator.trim()
    after, _ = cuda(cudart.cudaMemGetInfo())
    assert after >= before - 4 * MIB
    with pytest.raises(module.OutOfMemory):
        allocator.allocate(2**40)
    assert allocator.allocate(MIB)  # the failure left no error behind
