"""Programs of tools/ whose kernels run on the host; and tools/reach.cu on a made-up GPU."""

import json
import os
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from analysis import ROOT
from tests.compiled import kept, object_file, program
from tests.kernels.stubbed import launches_as_calls, on_cpu, runtime

TOOLS = ROOT / "tools"
SOURCE = TOOLS / "reach.cu"
HERE = Path(__file__).parent
ON_HOST = [
    (re.compile(r'asm volatile\("mov.u64 %0, %%globaltimer;" : "=l"\((\w+)\)\);'), r"\1 = tick();"),
    (re.compile(r"__grid_constant__ Listed list"), "Listed& list"),
    # Less to do, and more chunks than the ring has slots: 20.
    (re.compile(r"1 << 18, \(256 << 20\) / row"), "1 << 13, (5 << 20) / row"),
    (re.compile(r"kSlots = 128"), "kSlots = 4"),
    (re.compile(r"kMemory = size_t\{256\}"), "kMemory = size_t{4}"),
    # reach.cu's kernels take made-up time, and its main() is called by that of reach_on_host.cpp.
    (re.compile(r"__global__ void fill(?s:.+)(?=void check\()"), ""),
    (re.compile(r"fill<<<.+>>>\(pool\);"), ""),
    (re.compile(r"gather<<<.+>>>\(pool, out, walk\);"), "gather_on_made_up_gpu(walk);"),
    (re.compile(r"#ifdef __CUDACC__\n((?s:.*))int main\("), r"#if 1\n\1void reach("),
]


def host_source(text: str) -> str:
    """CUDA source whose kernels are functions that the host calls."""
    for pattern, replacement in ON_HOST:
        text = pattern.sub(replacement, text)
    return launches_as_calls(text)


@cache
def emulated(name: str) -> Path:
    """tools/NAME.cu as a program of the host."""
    mains = [HERE / "reach_on_host.cpp"] if name == "reach" else []
    sources = [*mains, TOOLS / f"{name}.cu", *TOOLS.glob(f"{name}.h")]

    def make(folder: Path) -> None:
        for source in sources:
            (folder / source.name).write_text(host_source(source.read_text()))

    folder = kept(f"tool_{name}", [*sources, Path(__file__)], make)
    sanitizers = ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
    flags = ["-std=c++17", "-pthread", *on_cpu(), f"-I{HERE}", *sanitizers]
    flags += ["-Wall", "-Wextra", "-Werror", "-include", "made_up_gpu.h", "-x", "c++"]
    main = object_file(folder / sources[0].name, folder, flags)
    return program(name, [main, runtime()], folder, ["-pthread", *sanitizers])


def output(program: Path, *words: object, **more: object) -> subprocess.CompletedProcess[str]:
    """A run of a program with these variables in its environment."""
    given = os.environ | {name: str(value) for name, value in more.items()}
    command = [str(program), *map(str, words)]
    return subprocess.run(command, env=given, capture_output=True, text=True, check=False)


def figures(program: Path, *arguments: str, **more: object) -> Any:
    """The JSON that a program prints, which has checked every copied byte."""
    done = output(program, "--json", *arguments, **more)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def on_host(*arguments: object, text: str = "") -> list[float]:
    """Numbers that the host code of reach.cu computes, as reach_on_host.cpp explains."""
    command = [str(emulated("reach")), *map(str, arguments)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def fitted(curve: Iterable[tuple[float, float]], link_s: float) -> list[float]:
    """Reach in bytes, seconds of a walk, those per doubling, and error of a curve of pools."""
    return on_host("fit", link_s, text="".join(f"{pool} {time}\n" for pool, time in curve))
