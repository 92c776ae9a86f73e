"""Allocators on a GPU: reuse across streams, the real driver, PyTorch."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import numpy as np
import pytest

from analysis.study import Case, Study, Variant
from analysis.toolchain.arch import resolve_arch
from analysis.toolchain.compilers import find_toolchain
from analysis.toolchain.modules import load_python
from tests.compiled import gpu_module, gpu_samples
from tests.kernels.phases.modules import LIB, with_fault_in_allocator
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu

STUDY, MAPPED = STUDIES["phases"], STUDIES["fragmentation"]
WORKLOAD = load_python(STUDY, "workload")
MIB = 2**20


def compiled(source: str, variant: Variant, folder: Path, out: Path) -> Path:
    """A program of this folder over a variant as it is in `folder`, for the GPU that is here."""
    toolchain, sm = find_toolchain(), resolve_arch("auto", [0]).removeprefix("sm_")
    libraries = [f"-L{path}" for path in toolchain.libraries]
    sources = [Path(__file__).with_name(source), folder / variant.path.name]
    subprocess.run(
        [
            *(str(toolchain.nvcc), "-std=c++17", "-O2"),
            *(f"-I{path}" for path in (folder, folder.parent / "lib", LIB)),
            *(*libraries, *variant.flags),
            *(f"-gencode=arch=compute_{sm},code=sm_{sm}", "-o", str(out)),
            *map(str, sources),
        ],
        check=True,
    )
    return out


def canary(variant: Variant, folder: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """Build and run the canary over a variant as it is in `folder`."""
    program = compiled("canary.cu", variant, folder, out)
    return subprocess.run([program, "10000"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("study", "name"),
    [
        *((STUDY, name) for name in ("p4_final", "p5_streams", "p5_dropin")),
        *((MAPPED, name) for name in ("p6_mapped", "p7_ordered")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_stream_reads_what_another_has_overwritten(
    tmp_path: Path, study: Study, name: str
) -> None:
    done = canary(study.variant(name), study.folder, tmp_path / "canary")
    assert done.returncode == 0, done.stdout + done.stderr


def test_graphs_replay_what_was_captured_and_touch_nothing_else(tmp_path: Path) -> None:
    program = compiled("graphs.cu", STUDY.variant("p5_dropin"), STUDY.folder, tmp_path / "graphs")
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_canary_finds_an_allocator_that_does_not_wait(tmp_path: Path) -> None:
    fault = "p4_final.cpp", "if (!block->users.empty()) {", "if (false) {"
    copy = with_fault_in_allocator(tmp_path, *fault)
    done = canary(STUDY.variant("p4_final"), copy, tmp_path / "canary")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "words changed" in done.stdout


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


def test_ours_reserves_what_pytorch_reserves() -> None:
    pytest.importorskip("torch")
    for pattern in ("transformer_training", "dynamic_batches", "streams_4", "random_pair"):
        reserved = {}
        for name in ("p4_final", "torch_caching"):
            workload = WORKLOAD.Workload({}, np.random.default_rng(0))
            case = Case({"pattern": pattern}, 0, "default")
            reserved[name] = gpu_samples(STUDY, workload, name, case)["reserved"]
        theirs = reserved["torch_caching"]
        assert reserved["p4_final"] <= max(1.05 * theirs, theirs + 20 * MIB), pattern


def test_the_driver_gives_back_everything() -> None:
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
