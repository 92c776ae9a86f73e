"""Memory accesses of a kernel, read from its machine code: counts, widths, loads in flight.

python -m analysis.toolchain.sass STUDY VARIANT MODULE OUT
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from analysis.base.cli import fail_in_one_line
from analysis.base.errors import HotpathError
from analysis.base.records import to_text

WIDTHS: Final = (8, 16, 32, 64, 128, 256)
"""Bits a thread loads or stores by one instruction."""
WARP: Final = 32
COLUMNS: Final = (
    *("study", "variant", "arch", "kernel"),
    *(f"{what}_{width}" for what in ("load", "store") for width in WIDTHS),
    *("loads_in_flight", "in_flight_bytes", "reason"),
)
"""One row a kernel: instructions by width, and what a warp can have under way. A module that could
not be read has one row without a kernel, which gives the reason."""

_HEADER: Final = re.compile(r"^\s*(code for|Function :) (\S+)")
_LINE: Final = re.compile(
    r"^\s*/\*[0-9a-f]{4,}\*/\s+(?P<predicate>@!?U?P\w+\s+)?(?P<name>[A-Z]\w*)(?P<options>[.\w]*)(?P<rest>[^;]*);"
)
_REGISTER: Final = re.compile(r"\bR(\d+)(\.64)?")
_WIDTH: Final = re.compile(r"\.(?:[US](8|16)|(64|128|256))\b")


@dataclass
class KernelCode:
    """Loads and stores of global or unknown memory by width in bits, and loads under way.

    `loads_in_flight` is the most loads that a warp has issued before it needs the data of one, and
    `in_flight_bytes` what the last such group asks for where every lane takes part. `reason` says
    why a module could not be read.
    """

    arch: str = ""
    kernel: str = ""
    loads: Counter[int] = field(default_factory=Counter)
    stores: Counter[int] = field(default_factory=Counter)
    loads_in_flight: int = 0
    in_flight_bytes: int = 0
    reason: str = ""

    def follow(self, waiting: dict[int, tuple[int, int]], line: re.Match[str]) -> None:
        """Count one instruction and update the loads under way: by first register, how many
        registers each fills, and its width in bits."""
        name, operands = line["name"], line["rest"]
        for number, pair in _REGISTER.findall(operands):
            named = {int(number), int(number) + bool(pair)}
            for first, (count, _) in list(waiting.items()):
                if not named.isdisjoint(range(first, first + count)):
                    del waiting[first]
        option = _WIDTH.search(line["options"])
        width = int(option[1] or option[2]) if option else 32
        if name in ("STG", "ST"):
            self.stores[width] += 1
        elif name in ("LDG", "LD"):
            self.loads[width] += 1
            if target := re.match(r"\s*(?:P\w+,\s*)?R(\d+)", operands):
                waiting[int(target[1])] = (max(width // 32, 1), width)
            if len(waiting) >= self.loads_in_flight:
                self.loads_in_flight = len(waiting)
                self.in_flight_bytes = sum(bits for _, bits in waiting.values()) // 8 * WARP
        elif name in ("BRA", "EXIT", "RET") and not line["predicate"]:
            waiting.clear()


def parse_sass(text: str) -> list[KernelCode]:
    """Every kernel in `text`, the output of `cuobjdump -sass`.

    Code is followed in program order as if no conditional branch were taken. A load is under way
    from its issue until an instruction names a register it fills; asynchronous copies to shared
    memory do not count.
    """
    arch, kernels, waiting = "", list[KernelCode](), dict[int, tuple[int, int]]()
    for line in text.splitlines():
        if header := _HEADER.match(line):
            if header[1] == "code for":
                arch = header[2]
            else:
                kernels.append(KernelCode(arch, header[2]))
                waiting.clear()
        elif kernels and (instruction := _LINE.match(line)):
            kernels[-1].follow(waiting, instruction)
    return kernels


def find_tool(name: str) -> str:
    """A tool of CUDA: this environment's, else the one in PATH. HotpathError if there is none."""
    packaged = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin")
    if found := shutil.which(name, path=packaged) or shutil.which(name):
        return found
    raise HotpathError(f"{name} is neither in this environment nor in PATH")


def cuobjdump(file: Path, *arguments: str) -> str:
    """What cuobjdump writes of `file`; empty if it has no device code. HotpathError with the tool's
    message where it fails."""
    command = [find_tool("cuobjdump"), *arguments, str(file)]
    environment = os.environ | {"NVDISASM_PATH": str(Path(find_tool("nvdisasm")).parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode and "does not contain device code" not in done.stderr:
        raise HotpathError(f"{file.name}: {done.stderr.strip() or 'cuobjdump failed'}")
    return done.stdout


def write_code(path: Path, study: str, variant: str, kernels: Iterable[KernelCode]) -> None:
    """Write COLUMNS; a reason becomes a row by itself."""
    rows: list[list[object]] = []
    for kernel in kernels:
        counts = [of[width] for of in (kernel.loads, kernel.stores) for width in WIDTHS]
        numbers = [*counts, kernel.loads_in_flight, kernel.in_flight_bytes]
        known = [""] * len(numbers) if kernel.reason else numbers
        rows.append([study, variant, kernel.arch, kernel.kernel, *known, kernel.reason])
    path.write_text(to_text(COLUMNS, rows), newline="")


def read_code(path: Path) -> dict[tuple[str, str], list[KernelCode]]:
    """The content of a file by `write_code`, by study and variant; empty without a file."""
    found: defaultdict[tuple[str, str], list[KernelCode]] = defaultdict(list)
    lines = path.read_text().splitlines()[1:] if path.exists() else ()
    for study, variant, arch, kernel, *texts, reason in csv.reader(lines):
        numbers = [int(text or 0) for text in texts]
        loads, stores = (
            Counter(dict(zip(WIDTHS, numbers[start:], strict=False))) for start in (0, len(WIDTHS))
        )
        code = KernelCode(arch, kernel, loads, stores, numbers[-2], numbers[-1], reason)
        found[study, variant].append(code)
    return found


def main(study: str, variant: str, module: str, out: str) -> None:
    """Write the accesses of a variant's kernels, or why they cannot be read."""
    try:
        kernels = parse_sass(cuobjdump(Path(module), "-sass"))
    except HotpathError as error:
        kernels = [KernelCode(reason=str(error))]
    write_code(Path(out), study, variant, kernels)


if __name__ == "__main__":
    fail_in_one_line(lambda: main(*sys.argv[1:]))
