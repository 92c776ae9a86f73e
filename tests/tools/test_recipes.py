"""The recipes of tools/: their programs with kernels that run on the host, and on a GPU."""

import importlib.util
import json
import shutil
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from unittest.mock import MagicMock, call

import pytest

from allocator import plugged
from analysis.toolchain.compilers import resolve_arch
from tests.compiled import run, toolchain
from tests.tools.reach import TOOLS, emulated, figures, output

GIB = 2**30
PIN = {"bytes", "host_alloc_s", "host_alloc_wait_s", "pin_s", "pin_wait_s", "unpin_s"}


def test_pinned_memory_is_whole_for_copies_and_gone_after_an_error() -> None:
    found = figures(emulated("pin"), "--gib", "0.75")
    assert found.keys() == PIN
    assert found["bytes"] == 0.75 * GIB
    failed = output(emulated("pin"), "--gib", "0.75", REFUSED="2")
    assert (failed.returncode, failed.stderr) == (1, "error: pinning: refused\n")


@pytest.mark.parametrize("row_bytes", ["656", "4096"])
def test_both_gathers_bring_every_row(row_bytes: str) -> None:
    found = figures(emulated("gather"), "--pool-gib", "0.25", "--row-bytes", row_bytes)
    assert found.keys() > {"link", "read_small_pool", "read", "read_four_adjacent", "chosen"}
    assert found["pool_bytes"] == 0.25 * GIB // int(row_bytes) * int(row_bytes)


def test_pieces_arrive_by_every_way_and_have_the_simplest_fast_one() -> None:
    found = figures(emulated("copy_pieces"))  # of up to 4,096 pieces, of which a launch takes 1,024
    chosen = {(row["layout"], row["bytes"], row["pieces"]): row["chosen"] for row in found}
    assert {way for (layout, *_), way in chosen.items() if layout == "even"} == {"pitched"}
    assert [chosen["scattered", size, 16] for size in (512, 131072)] == ["kernel", "kernel"]
    assert chosen["scattered", 2**17, 2] in {"loop", "pitched"}
    assert all({"loop_s", "batch_s", "kernel_s", "chosen_s"} < row.keys() for row in found)


def loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_python_recipe_splits_copies_at_borders_and_refuses_a_huge_pool() -> None:
    pin = loaded("pin", TOOLS / "pin.py")
    parts = [list(pin.parts(*one)) for one in ((6, 7, 8), (8, 16, 8), (5, 0, 8))]
    assert parts == [[(0, 2), (2, 7)], [(0, 8), (8, 16)], []]
    for size in (0, 2**62):
        with pytest.raises(ValueError, match=rf"size: expected 1 to \d+ bytes, .*, got {size}"):
            pin.PinnedPool(size)


def test_the_allocator_hooks_into_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "an_allocator"
    package.mkdir()
    shutil.copy(plugged.__file__, package / "__init__.py")
    (package / "variant.py").write_text('HOOKS = {"set_reset_fn": 7, "set_release_pool": 8}')
    torch = MagicMock()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.cuda", torch.cuda)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("an_allocator").install()
    memory = torch.cuda.memory
    made = call(str(package / "variant.py"), "plug_allocate", "plug_free")
    assert memory.CUDAPluggableAllocator.mock_calls[0] == made
    pluggable = memory.CUDAPluggableAllocator()
    assert pluggable.allocator().method_calls == [call.set_reset_fn(7), call.set_release_pool(8)]
    memory.change_current_allocator.assert_called_once_with(pluggable)


def compiled(source: str, out: Path, *flags: str) -> Path:
    """A program or module for this machine's GPU."""
    arch, found = resolve_arch("auto", [0]), toolchain()
    libraries = [f"-L{path}" for path in found.libraries]
    command = [str(found.nvcc), "-ccbin", found.cxx, f"-arch={arch}", *libraries, *flags]
    run(*command, str(TOOLS / source), "-o", str(out))
    return out


@pytest.mark.gpu
def test_recipes_are_fast_on_a_gpu(tmp_path: Path) -> None:
    names = ("pin", "gather", "copy_pieces", "idle_stream")
    programs = {name: compiled(f"{name}.cu", tmp_path / name, "-O3") for name in names}
    pin = figures(programs["pin"], "--gib", "8")
    assert pin["pin_s"] < pin["host_alloc_s"] / 3
    gather = figures(programs["gather"], "--pool-gib", "4")
    assert 0.7 < gather["read_four_adjacent"] / gather["link"] < 1.02
    assert gather["chosen"] > 0.9 * max(gather["read"], gather.get("pack", 0))
    for row in figures(programs["copy_pieces"]):
        fastest = min(row[key] for key in row if key.endswith("_s") and key != "chosen_s")
        assert row["chosen_s"] < 1.5 * fastest + 5e-6, row
    lines = map(json.loads, output(programs["idle_stream"]).stdout.splitlines())
    unchanged = {(row["kib"], row["idle"]): row["unchanged"] for row in lines}
    assert unchanged[24, 1] == 256 and unchanged[28, 1] == unchanged[24, 0] == 0


@pytest.mark.gpu
def test_pytorch_gathers_from_the_pool_that_it_pins(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pin = loaded("pin", TOOLS / "pin.py")
    found = pin.measure(2 * GIB)
    assert found["pin_s"] < found["torch_s"] / 2
    home, module = Path(torch.__file__).parent, tmp_path / "gather_rows.so"
    headers = [home / "include", home / "include/torch/csrc/api/include"]
    flags = [f"-I{at}" for at in (*headers, sysconfig.get_path("include"))]
    flags += [f"-L{home}/lib", "-ltorch_python", "-ltorch_cpu", "-lc10", "-lc10_cuda"]
    flags += ["-std=c++20", "-DTORCH_EXTENSION_NAME=gather_rows", "-Xcompiler=-fPIC", "-shared"]
    flags += ["-O0", "--expt-relaxed-constexpr"]
    compiled("gather.cu", module, *flags)
    pool = pin.PinnedPool(96 << 20, chunk_bytes=32 << 20)
    rows = pool.tensor[: 100_000 * 656].view(100_000, 656).random_(256)
    gather = loaded("gather_rows", module).RowGather(rows, max_rows=20_000)
    numbers = torch.randint(100_000, (20_000,), dtype=torch.int32, device="cuda")
    assert torch.equal(gather(numbers).cpu(), rows[numbers.cpu().long()])


@pytest.mark.gpu
def test_the_allocator_is_installed_under_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    run(sys.executable, "-m", "allocator", "install", str(tmp_path))
    program = """if True:
        import hotpath_allocator
        hotpath_allocator.install()
        import torch
        assert torch.ones(10**6, device="cuda").sum() == 10**6
        print(hotpath_allocator.statistics()["peak_active"])
        torch.empty(2**50, device="cuda")"""
    done = output(Path(sys.executable), "-c", program, PYTHONPATH=str(tmp_path))
    assert int(done.stdout) >= 4 * 10**6
    assert "OutOfMemoryError" in done.stderr
