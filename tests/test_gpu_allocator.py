"""What only a GPU can show of the allocators: reuse across streams, the real driver, PyTorch."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis import ROOT
from analysis.modules import load_module, load_python
from analysis.study import Case, Variant, discover
from analysis.toolchain.compile import compile_bindings, compile_module
from analysis.toolchain.compilers import find_toolchain, resolve_arch

pytestmark = pytest.mark.gpu

STUDY = discover()["allocator"]
WORKLOAD = load_python(STUDY, "workload")
MIB = 2**20


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Variant], Any]:
    """Loads a variant's module, built when it is first asked for."""
    folder = tmp_path_factory.mktemp("modules")
    bindings = folder / STUDY.name / "bindings.o"
    bindings.parent.mkdir()
    toolchain, arch = find_toolchain(), resolve_arch("auto", 0)
    compile_bindings(STUDY, toolchain, bindings)

    def load(variant: Variant) -> Any:
        out = folder / STUDY.name / f"{variant.name}.so"
        if variant.is_compiled and not out.exists():
            compile_module(STUDY, variant, toolchain, arch, bindings, out)
        return load_module(folder, STUDY, variant)

    return load


def canary(folder: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """Build and run the canary over the p4_final of `folder`."""
    toolchain, sm = find_toolchain(), resolve_arch("auto", 0).removeprefix("sm_")
    libraries = [f"-L{path}" for path in toolchain.libraries]
    sources = ["tests/native/allocator_canary.cu", "allocator/p4_final.cpp"]
    subprocess.run(
        [
            *(str(toolchain.nvcc), "-std=c++17", "-O2", *libraries),
            *(f"-gencode=arch=compute_{sm},code=sm_{sm}", "-o", str(out)),
            *(str(folder / source) for source in sources),
        ],
        check=True,
    )
    return subprocess.run([out, "10000"], capture_output=True, text=True, check=False)


def test_no_stream_reads_what_another_has_overwritten(tmp_path: Path) -> None:
    done = canary(ROOT, tmp_path / "canary")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_canary_finds_an_allocator_that_does_not_wait(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "allocator", tmp_path / "allocator")
    shutil.copytree(ROOT / "tests" / "native", tmp_path / "tests" / "native")
    final = tmp_path / "allocator" / "p4_final.cpp"
    checked = "if (!block->users.empty()) {"
    assert checked in final.read_text()
    final.write_text(final.read_text().replace(checked, "if (false) {"))
    done = canary(tmp_path, tmp_path / "canary")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "words changed" in done.stdout


def runnable() -> list[Variant]:
    has_torch = importlib.util.find_spec("torch") is not None
    return [variant for variant in STUDY.variants if has_torch or "torch" not in variant.needs]


@pytest.mark.parametrize("variant", runnable(), ids=lambda variant: variant.name)
def test_every_variant_serves_its_cases(
    modules: Callable[[Variant], Any], variant: Variant
) -> None:
    """A first case of each way of calling it, checked and measured."""
    cases: dict[str, Case] = {}
    for case in variant.in_grid("default"):
        cases.setdefault(str(case["pattern"]).rpartition(".")[0], case)
    for case in cases.values():
        workload = WORKLOAD.Workload({}, np.random.default_rng(0))
        workload.prepare(case)
        operation = workload.bind(variant, modules(variant))
        operation.poison()
        operation.launch(0)
        assert operation.check() is None
        samples = operation.own_samples(0, 1)
        assert set(samples) <= set(STUDY.metrics)
        assert 0 < samples["op_time"][0] < 0.1


def test_ours_reserves_what_pytorch_reserves(modules: Callable[[Variant], Any]) -> None:
    pytest.importorskip("torch")
    for pattern in ("transformer_training", "dynamic_batches", "streams_4", "random_pair"):
        reserved = {}
        for name in ("p4_final", "torch_caching"):
            variant = STUDY.variant(name)
            workload = WORKLOAD.Workload({}, np.random.default_rng(0))
            workload.prepare(Case({"pattern": pattern}, 0, "default"))
            operation = workload.bind(variant, modules(variant))
            operation.launch(0)
            assert operation.check() is None
            reserved[name] = operation.own_samples(0, 1)["reserved"][0]
        theirs = reserved["torch_caching"]
        assert reserved["p4_final"] <= max(1.05 * theirs, theirs + 20 * MIB), pattern


def test_the_driver_gives_back_everything(modules: Callable[[Variant], Any]) -> None:
    from cuda.bindings import runtime as cudart

    from analysis.measure.memory import cuda

    module = modules(STUDY.variant("p4_final"))
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
