"""Launches of several GPUs with kernels on the CPU: every byte that arrives, and failures."""

import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.study import Variant
from analysis.toolchain.modules import load_python
from kernels.common.outputs import POISON
from tests.compiled import kept
from tests.conformance.emulated import bound, draw_few
from tests.kernels import stubbed
from tests.kernels.cuda import Cuda
from tests.repository import STUDIES

HERE = Path(__file__).parent
PEERS = STUDIES["peers"]
WORKLOAD = load_python(PEERS, "workload")
WAYS = ("_divided", "_both", "", "_sorted", "_in_order", "_packed")
"""Ways by which all GPUs bring rows of the host to one."""
CALLER = 64
"""The address of a stream of the first GPU, which the runtime only tells apart."""
STREAM = ctypes.c_void_p(CALLER)
CORES = [0, 1, 0]


def for_the_cpu(variant: Variant) -> Path:
    """The variant's source beside the study's headers, whose kernels a host's compiler takes."""
    files = [*sorted(PEERS.folder.glob("*.h")), variant.path]

    def fill(folder: Path) -> None:
        for file in files:
            name = "variant.cpp" if file == variant.path else file.name
            text = stubbed.launches_as_calls(file.read_text())
            (folder / name).write_text(f'#include "kernels_on_cpu.h"\n{text}')

    return kept(f"{variant.name}.on_cpu", [*files, Path(__file__)], fill) / "variant.cpp"


def launch(operation: Any, is_ahead: bool = False) -> None:
    """Launch the next set behind work of the caller's that overwrites all rows, which other streams
    may not overtake even if they are ahead of it."""
    runtime = operation.module.runtime
    for part in operation._parts:
        at, size = ctypes.c_void_p(part.output.pointer), int(np.prod(part.output.shape))
        runtime.cudaMemsetAsync(at, POISON, ctypes.c_size_t(size), STREAM)
    operation.launch(CALLER)
    gpu = ctypes.c_int(-1)
    runtime.cudaGetDevice(ctypes.byref(gpu))
    assert gpu.value == 0, "another GPU stays current"
    if is_ahead:
        runtime.run_ahead(STREAM)
    runtime.cudaStreamSynchronize(STREAM)


def has_arrived(part: Any, number: int) -> bool:
    """Whether the rows of a part are those of the set of this number."""
    rows = part.launches.sources[number, part.begin : part.end]
    expected = np.empty((len(rows), part.output.shape[1]), np.uint8)
    part.pool.gather(rows, expected)
    return np.array_equal(part.output.landed()[part.begin : part.end], expected)


def every_byte_arrives(operation: Any) -> None:
    """Launches take turns with the sets, but the first one is for the check."""
    sets = range(len(operation._parts[0].launches.sources))
    for _ in range(2):
        operation.poison()
        launch(operation)
        assert operation.check() is None
        for number in (*sets[1:], 1):
            launch(operation, number % 2 == 1)
            assert all(has_arrived(part, number) for part in operation._parts), f"set {number}"


def failures_come_out(operation: Any, variant: Variant) -> None:
    """Each call in turn."""
    runtime = operation.module.runtime
    for call in range(10_000):
        runtime.fail_at(call)
        try:
            operation.inputs.bind(variant, operation.module).launch(CALLER)
            runtime.run_ahead(STREAM)
            has_failed = runtime.cudaStreamSynchronize(STREAM) != 0
        except RuntimeError:
            has_failed = True
        runtime.fail_at(-1)
        runtime.run_ahead(STREAM)
        runtime.cudaStreamSynchronize(STREAM)
        if not has_failed:
            return
    pytest.fail("calls fail for ever")


@pytest.fixture(autouse=True)
def few(fake: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    draw_few(monkeypatch)
    monkeypatch.setattr(WORKLOAD, "cores", lambda: CORES)
    monkeypatch.setattr(WORKLOAD.atexit, "register", lambda close: None)  # memory is not CUDA's


def on_cpu(name: str) -> Callable[..., Any]:
    """Binds a variant to a case."""
    variant = PEERS.variant(name)
    include = [f"-I{HERE / 'emulated'}", f"-I{PEERS.folder}"]
    source = for_the_cpu(variant) if variant.path.suffix == ".cu" else None
    # Fewer translations are held, so that order matters in small pools, too.
    peers = replace(PEERS, constants={**PEERS.constants, "held_mib": 1})
    module = stubbed.stubbed(peers, name, *stubbed.on_cpu(), *include, source=source)
    module.runtime.be_late()

    def operation(row_bytes: int, rows: int, mib: int = 1) -> Any:
        values = {"row_bytes": row_bytes, "rows": rows, "pool_mib": mib}
        return bound("peers", name, values, module)

    return operation


@pytest.mark.parametrize(
    "name",
    [
        "four_copy_engines",
        *(pytest.param(f"four_links{way}", marks=pytest.mark.long) for way in WAYS),
    ],
)
def test_every_byte_arrives_and_a_failure_comes_out(name: str) -> None:
    made, variant = on_cpu(name), PEERS.variant(name)
    for row_bytes in (16, 32, 48, 128, 256, 656, 1024, 4096):
        every_byte_arrives(made(row_bytes, 200))
    for size in ((16, 9000), (656, 9), (4096, 8600, 36)):  # by the last, streams send several times
        every_byte_arrives(made(*size))
    operation = made(48, 200)
    failures_come_out(operation, variant)
    every_byte_arrives(operation)


def test_a_peer_works_alone_and_a_neighbour_is_not_waited_for() -> None:
    operation = on_cpu("two_copy_engines")(32, 21)
    inputs, module = operation.inputs, operation.module
    whole = replace(operation._parts[0], end=21)

    def made_of(*parts: Any) -> Any:
        taken = [inputs._in_module(module, part) for part in parts]
        made = module.Bound(taken, gpus=2, cpus=CORES)
        gather = WORKLOAD.Gather(made, [*parts], inputs._buffers, 2)
        gather.module = module
        return gather

    every_byte_arrives(made_of(replace(whole, gpu=1)))
    neighbour = replace(whole, gpu=1, output=inputs._output(1), is_neighbour=True)
    both = made_of(whole, neighbour)
    both.reset(CALLER)  # before the first launch, there is nothing to wait for
    launch(both)
    assert has_arrived(whole, 0) and not has_arrived(neighbour, 0)
    both.reset(CALLER)
    module.runtime.cudaStreamSynchronize(STREAM)
    assert both.check() is None


def test_the_clock_of_bindings_flushes_launches_and_waits() -> None:
    operation, l2 = on_cpu("two_copy_engines")(32, 21), np.ones(4096, np.uint8)
    for size in (0, 100):
        operation.poison()
        submit_s, host_s = operation.launcher.time_launch(CALLER, l2.ctypes.data, size)
        assert 0 < submit_s < host_s < 1
        assert np.count_nonzero(l2 == 0) == size
        assert operation.check() is None
    operation.poison()
    operation.launcher.time_launch(0, l2.ctypes.data, l2.nbytes)
    assert np.count_nonzero(l2 == 0) == size, "a null stream is work of the CPU alone"
    assert operation.check() is not None, "nothing waits for a null stream"
