"""Reports of the compiler's tools on kernels: resources, and memory accesses of the machine code.

python -m analysis.toolchain.reports MODULE    write both as tables beside a module
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pycxxfilt

from analysis.base.cli import fail_in_one_line
from analysis.base.errors import HotpathError
from analysis.base.files import write_whole
from analysis.base.records import to_text

REPORT: Final = ".ptxas"
"""Suffix of the file beside a module with what ptxas printed."""
Row = dict[str, Any]
"""Values by column."""
WIDTHS: Final = (8, 16, 32, 64, 128, 256)
"""Bits a thread loads or stores by one instruction."""
WARP: Final = 32
_KERNEL: Final = dict.fromkeys(("study", "variant", "arch", "kernel"), str)
_STACK: Final = ("stack_bytes", "spill_store_bytes", "spill_load_bytes")
RESOURCES: Final = _KERNEL | dict.fromkeys(("registers", "shared_bytes", *_STACK), int)
"""Columns of a table of resources, with their types. It has a row for each kernel: a thread's
registers, stack and spills, and a block's static shared memory."""
_ACCESSES: Final = (
    *(f"{what}_{width}" for what in ("load", "store") for width in WIDTHS),
    *("loads_in_flight", "in_flight_bytes"),
)
MACHINE_CODE: Final = _KERNEL | dict.fromkeys(_ACCESSES, float) | {"reason": str}
"""Columns of a table of accesses, with their types. It has a row for each kernel: loads and stores
of global or unknown memory by width in bits; the most loads that a warp has issued before it needs
the data of one, and what the last such group asks for where every lane takes part. A module that
could not be read has one row without a kernel, which gives the reason."""

_REPORT: Final = re.compile(
    r"Compiling entry function '(\S+)' for '(\S+)'\n.*\n"
    r"\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n"
    r".*Used (\d+) registers(?:.*?(\d+) bytes smem)?"
)
_NAME: Final = re.compile(
    r"(?:void )?(?:(?:\w+|\(anonymous namespace\))::)*(?P<name>\w+)(?P<arguments><\w+(?:, \w+)*>)?"
)
"""Kernels return void and are not members, so only namespaces precede the name."""
_HEADER: Final = re.compile(r"^\s*(code for|Function :) (\S+)")
_LINE: Final = re.compile(
    r"^\s*/\*[0-9a-f]{4,}\*/\s+(?P<predicate>@!?U?P\w+\s+)?(?P<name>[A-Z]\w*)(?P<options>[.\w]*)(?P<rest>[^;]*);"
)
_REGISTER: Final = re.compile(r"\bR(\d+)(\.64)?")
_WIDTH: Final = re.compile(r"\.(?:[US](8|16)|(64|128|256))\b")


def parse_ptxas(text: str) -> list[Row]:
    """Every kernel in `text`, the output of `ptxas -v`."""
    rows = []
    for kernel, arch, *counts in _REPORT.findall(text):
        names = (*_STACK, "registers", "shared_bytes")
        numbers = dict(zip(names, (int(count or 0) for count in counts), strict=True))
        rows.append({"kernel": kernel, "arch": arch, **numbers})
    return rows


def kernel_name(symbol: str) -> str:
    """Short kernel name from a mangled one: copy_rows<4, Wide>.

    Template arguments are left out unless each is a number or one word. A name that is not mangled
    is returned unchanged.
    """
    with suppress(ValueError):  # it only begins like a mangled name
        if name := _NAME.match(pycxxfilt.itanium_demangle(symbol) or ""):
            return name["name"] + re.sub(r"\b(\d+)[ul]+\b", r"\1", name["arguments"] or "")
    return symbol


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
                kernels.append({**dict.fromkeys(_ACCESSES, 0), "arch": arch, "kernel": header[2]})
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


def resources(module: Path) -> list[Row]:
    """The resources of a module's kernels, from the report beside it."""
    return parse_ptxas(module.with_suffix(REPORT).read_text())


def machine_code(module: Path) -> list[Row]:
    """The accesses of a module's kernels, or why they cannot be read."""
    try:
        return parse_sass(cuobjdump(module, "-sass"))
    except HotpathError as error:
        return [{"reason": str(error)}]


def main(module: Path) -> None:
    """Write the tables; a value that a kernel lacks becomes an empty cell."""
    names = {"study": module.parent.name, "variant": module.stem}
    for suffix, columns, kernels in (
        (".ptxas.csv", RESOURCES, resources(module)),
        (".sass.csv", MACHINE_CODE, machine_code(module)),
    ):
        rows = [{**names, **kernel} for kernel in kernels]
        cells = ([row.get(name) for name in columns] for row in rows)
        write_whole(module.with_suffix(suffix), to_text([*columns], cells))


if __name__ == "__main__":
    fail_in_one_line(lambda: main(Path(sys.argv[1])))
