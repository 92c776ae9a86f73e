"""Replay a recording of PyTorch's memory on PyTorch's allocator and on this project's, or build the
latter as a package that plugs it into PyTorch.

python -m allocator replay snapshot.pickle
python -m allocator install FOLDER
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from allocator.lib.patterns import Pattern
from allocator.lib.replay import streams
from allocator.lib.snapshot import read_snapshot
from analysis.api.code import compile_bindings, compile_module, load_module
from analysis.api.study import Study, fail_in_one_line, find_study, program

PLUGGED_STUDY: Final = "training"
PACKAGE: Final = "hotpath_allocator"
TORCH: Final = "torch_caching"
OURS: Final = "p5_dropin"
HOST_BYTES: Final = 2**50
"""Capacity of the stand-in for a GPU: no recording fills it."""
ROW: Final = "{:<13}  {:>15}  {:>15}  {:>12}"


def main() -> None:
    parser = program("allocator", __doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("replay", help="replay a file of _dump_snapshot")
    command.add_argument("snapshot", type=Path, help="file of torch.cuda.memory._dump_snapshot")
    command.set_defaults(lines=lambda given: report(given.snapshot))
    command = commands.add_parser("install", help=f"write the Python package {PACKAGE}")
    command.add_argument("folder", type=Path, help="a folder of sys.path")
    command.set_defaults(lines=lambda given: install(given.folder / PACKAGE))
    given = parser.parse_args()
    for line in given.lines(given):
        print(line)


def install(package: Path) -> Iterator[str]:
    """Build the allocator for this machine's PyTorch into the Python package `package`."""
    study = find_study(PLUGGED_STUDY)
    variant = study.variant(OURS)
    package.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        bindings, module = Path(folder) / "bindings.o", Path(folder) / "variant.so"
        compile_bindings(study, None, bindings)
        compile_module(variant, bindings, module)
        shutil.copy(module, package / module.name)
    shutil.copy(Path(__file__).with_name("plugged.py"), package / "__init__.py")
    yield f"{package}: import {package.name}; {package.name}.install()"


def report(path: Path) -> Iterator[str]:
    """The memory of each device of a recording on both allocators, line by line."""
    on_gpu = has_gpu()
    where = "the GPU" if on_gpu else "the CPU's stand-in for a GPU"
    for recording in read_snapshot(path):
        # PyTorch's allocator comes last: after an error, it may keep memory.
        ours, theirs = (replay_row(name, recording.pattern, on_gpu) for name in (OURS, TORCH))
        left_out = ", ".join(f"{n:,} {kind}" for kind, n in sorted(recording.left_out.items()))
        yield (
            f"device {recording.device}: {recording.allocations:,} allocations; "
            f"{recording.live:,} of them live at the start; "
            f"at most {mebibytes(recording.peak_bytes)} requested at a time; on {where}; "
            f"left out: {left_out or 'nothing'}"
        )
        yield ROW.format("allocator", "peak", "reserved", "driver calls")
        yield from (theirs, ours)
    yield "peak: bytes of live blocks, at most; reserved: bytes held from the driver, at most."


def mebibytes(size: int) -> str:
    return f"{size / 2**20:,.2f} MiB"


def replay_row(name: str, pattern: Pattern, on_gpu: bool) -> str:
    """Name, peak, reserved and driver calls of an empty allocator after one replay, which checks
    every address; or its name and the reason."""
    study = find_study("phases")
    try:
        if name == TORCH:
            if not on_gpu:
                raise RuntimeError("needs a GPU")
            import torch

            torch.cuda.init()
        module = load_module(modules_of(study, name), study, study.variant(name))
        source = module.DriverSource() if on_gpu else module.HostSource(HOST_BYTES)
        handles = streams(pattern.streams) if on_gpu else list(range(pattern.streams))
        allocator = module.Allocator(source)
        allocator.reset_statistics()
        module.Runner(allocator, pattern.tapes, handles).check(False)
    except (AssertionError, ImportError, MemoryError, RuntimeError) as error:
        return f"{name:<13}  not replayed: {' '.join(str(error).split()) or repr(error)}"
    found = allocator.statistics()
    peaks = (mebibytes(found[f"peak_{kind}"]) for kind in ("active", "reserved"))
    return ROW.format(name, *peaks, f"{found['driver_calls']:,}")


def modules_of(study: Study, name: str) -> Path:
    """The folder of modules that has a variant's, built for any GPU: its code runs on the host."""
    folder = study.root / "build" / "modules"
    built = sorted(folder.glob(f"*/{study.name}/{name}.so"))
    return built[0].parents[1] if built else folder


def has_gpu() -> bool:
    """Whether CUDA can use a GPU."""
    with suppress(ImportError, RuntimeError):
        from cuda.bindings import runtime

        return bool(runtime.cudaGetDeviceCount()[1])  # None after an error
    return False


if __name__ == "__main__":
    fail_in_one_line(main)
