"""Memory accesses of a kernel, read from its machine code: counts, widths, loads in flight.

python -m analysis.toolchain.sass STUDY VARIANT MODULE OUT
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from analysis.base.cli import fail_in_one_line
from analysis.base.errors import HotpathError
from analysis.base.records import to_text

WIDTHS: Final = (8, 16, 32, 64, 128, 256)
"""Bits a thread loads or stores by one instruction."""
WARP: Final = 32
_NO_ACCESS: Final[Mapping[str, int]] = {
    **{f"{what}_{width}": 0 for what in ("load", "store") for width in WIDTHS},
    "loads_in_flight": 0,
    "in_flight_bytes": 0,
}
COLUMNS: Final = {
    **dict.fromkeys(("study", "variant", "arch", "kernel"), str),
    **dict.fromkeys(_NO_ACCESS, float),
    "reason": str,
}
"""Columns of the table, with their types. It has a row for each kernel: loads and stores of global
or unknown memory by width in bits; the most loads that a warp has issued before it needs the data
of one, and what the last such group asks for where every lane takes part. A module that could not
be read has one row without a kernel, which gives the reason."""

Row = dict[str, Any]
"""Values by column."""
_HEADER: Final = re.compile(r"^\s*(code for|Function :) (\S+)")
_LINE: Final = re.compile(
    r"^\s*/\*[0-9a-f]{4,}\*/\s+(?P<predicate>@!?U?P\w+\s+)?(?P<name>[A-Z]\w*)(?P<options>[.\w]*)(?P<rest>[^;]*);"
)
_REGISTER: Final = re.compile(r"\bR(\d+)(\.64)?")
_WIDTH: Final = re.compile(r"\.(?:[US](8|16)|(64|128|256))\b")


def parse_sass(text: str) -> list[Row]:
    """Every kernel in `text`, the output of `cuobjdump -sass`.

    Code is followed in program order as if no conditional branch were taken. A load is under way
    from its issue until an instruction names a register it fills; asynchronous copies to shared
    memory do not count.
    """
    arch, kernels, waiting = "", list[Row](), dict[int, tuple[int, int]]()
    for line in text.splitlines():
        if header := _HEADER.match(line):
            if header[1] == "code for":
                arch = header[2]
            else:
                kernels.append({**_NO_ACCESS, "arch": arch, "kernel": header[2]})
                waiting.clear()
        elif kernels and (instruction := _LINE.match(line)):
            _follow(kernels[-1], waiting, instruction)
    return kernels


def _follow(kernel: Row, waiting: dict[int, tuple[int, int]], line: re.Match[str]) -> None:
    """Count one instruction and update the loads under way: by first register, how many registers
    each fills, and its width in bits."""
    name, operands = line["name"], line["rest"]
    for number, pair in _REGISTER.findall(operands):
        named = {int(number), int(number) + bool(pair)}
        for first, (count, _) in list(waiting.items()):
            if not named.isdisjoint(range(first, first + count)):
                del waiting[first]
    option = _WIDTH.search(line["options"])
    width = int(option[1] or option[2]) if option else 32
    if name in ("STG", "ST"):
        kernel[f"store_{width}"] += 1
    elif name in ("LDG", "LD"):
        kernel[f"load_{width}"] += 1
        if target := re.match(r"\s*(?:P\w+,\s*)?R(\d+)", operands):
            waiting[int(target[1])] = (max(width // 32, 1), width)
        if len(waiting) >= kernel["loads_in_flight"]:
            kernel["loads_in_flight"] = len(waiting)
            kernel["in_flight_bytes"] = sum(bits for _, bits in waiting.values()) // 8 * WARP
    elif name in ("BRA", "EXIT", "RET") and not line["predicate"]:
        waiting.clear()


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


def main(study: str, variant: str, module: str, out: str) -> None:
    """Write the accesses of a variant's kernels, or why they cannot be read."""
    try:
        kernels = parse_sass(cuobjdump(Path(module), "-sass"))
    except HotpathError as error:
        kernels = [{"reason": str(error)}]
    named = ({"study": study, "variant": variant, **kernel} for kernel in kernels)
    text = to_text([*COLUMNS], ([kernel.get(column) for column in COLUMNS] for kernel in named))
    Path(out).write_text(text, newline="")


if __name__ == "__main__":
    fail_in_one_line(lambda: main(*sys.argv[1:]))
