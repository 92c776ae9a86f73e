"""Allocators on a GPU: all three studies, reuse across streams, the real driver, PyTorch."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.study import Case, Variant
from analysis.toolchain.compilers import find_toolchain, resolve_arch
from analysis.toolchain.modules import load_python
from analysis.toolchain.packages import PACKAGES
from tests.compiled import gpu_module, gpu_samples
from tests.kernels.phases.modules import LIB, MIB, STUDY
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu

Measure = Callable[..., dict[str, float]]
MAPPED = STUDIES["fragmentation"]
FRAGMENTED = {"growing_batch", "gathered_shards", "host_ahead"}


def served() -> Iterator[tuple[str, str, str]]:
    """Study, variant and case: all works, some patterns, and each way of calling an allocator."""
    for study in ("phases", "fragmentation", "training"):
        for variant in STUDIES[study].variants:
            chosen: dict[str, str] = {}
            for case in variant.in_grid("default") if study == "phases" else variant.cases:
                name = str(case["work" if study == "training" else "pattern"])
                way = name.rpartition(".")[0] if study == "phases" else name
                if study != "fragmentation" or name in FRAGMENTED:
                    chosen.setdefault(way, name)
            yield from ((study, variant.name, name) for name in chosen.values())


@cache
def workload(study: str) -> Any:
    made = load_python(STUDIES[study], "workload").Workload
    getattr(made, "before_cuda", bool)()
    return made({}, np.random.default_rng(0))


def samples_of(study: str, variant: str, name: str) -> dict[str, Any]:
    case = Case({"work" if study == "training" else "pattern": name}, 0, "default")
    return gpu_samples(STUDIES[study], workload(study), variant, case)


@pytest.fixture(scope="module")
def measure() -> Iterator[Measure]:
    """Measures a case in a process of its study, which has not used CUDA before."""
    processes: dict[str, ProcessPoolExecutor] = {}

    def measured(study: str, variant: str, name: str) -> dict[str, Any]:
        for need in PACKAGES.keys() & set(STUDIES[study].variant(variant).needs):
            pytest.importorskip(PACKAGES[need].module)
        if study not in processes:
            processes[study] = ProcessPoolExecutor(1, get_context("spawn"))
        return processes[study].submit(samples_of, study, variant, name).result()

    yield measured
    for process in processes.values():
        process.shutdown()


@pytest.mark.parametrize(("study", "variant", "name"), [*served()])
def test_every_variant_serves_its_cases(
    measure: Measure, study: str, variant: str, name: str
) -> None:
    samples = measure(study, variant, name)
    assert set(samples) <= set(STUDIES[study].metrics)
    assert 0 < samples.get("op_time", samples.get("host_time", 0)) < 1
    assert samples.get("active", 0) <= samples.get("reserved", 2**40)
    assert 0 < samples.get("allocation_share", 0.5) < 1


def test_each_reference_has_its_own_settings_though_one_process_has_one_allocator(
    measure: Measure,
) -> None:
    names = ("torch_caching", "torch_expandable", "torch_roundup", "torch_caching")
    found = [measure("fragmentation", name, "growing_batch")["reserved"] for name in names]
    assert found[1] < found[2] < found[0] == found[3]
    assert 0 < measure("fragmentation", names[0], "limited_272mib")["reserved"] <= 272 * MIB
    expected = "^limit: expected an allocator that can be bounded, got cuda_malloc_async"
    with pytest.raises(ValueError, match=expected):
        measure("fragmentation", "cuda_malloc_async", "limited_272mib")


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


@pytest.mark.parametrize("name", ["p4_final", "p5_streams", "p5_dropin", "p6_mapped", "p7_ordered"])
def test_no_stream_reads_memory_that_another_has_overwritten(tmp_path: Path, name: str) -> None:
    study = STUDY if name < "p6" else MAPPED
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
