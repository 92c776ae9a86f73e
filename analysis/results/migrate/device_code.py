"""Compares the machine code of kernels: the bytes of their instructions, what these refer
to, all constants that they can read, and what the compiler notes of them: registers, memory, bounds
of a launch."""

from __future__ import annotations

import re
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from analysis.results.migrate.host_code import Different, readable
from analysis.toolchain.sass import cuobjdump

SIZES: Final = (".nv.constant0.", ".nv.shared.", ".nv.local.")
"""Sections of a kernel whose size alone counts: parameters, shared and local memory."""
CONSTANTS: Final = re.compile(r"\.nv\.constant[1-9]\d*")
"""Sections that every kernel of an image may read: no relocation says which one does."""
OF_IMAGE, OF_KERNEL = ".nv.info", ".nv.info."
"""Sections with the compiler's notes of functions."""
SIZED: Final = 4
"""The format of a note that says how long it is; all others have two bytes."""
NAMES_OF_SYMBOLS: Final = {0x0A: 4, 0x0F: None}
"""Leading bytes of a note that only number symbols, by kind of note: the section of parameters
before their place, and the whole note (None) of called functions."""


Note = tuple[int, bytes]
"""Kind and content of a note about a function."""


class _Fill(NamedTuple):
    """A relocation: its offset, type, addend and value, and its target: a section, or the name of a
    library's symbol."""

    shape: tuple[int, int, int, int]
    where: str


@dataclass(frozen=True)
class _Image:
    """A cubin: `sections` by name, each with its header and its bytes, the `relocations` of each,
    and the compiler's `notes` by function."""

    sections: dict[str, tuple[dict[str, Any], bytes]]
    relocations: dict[str, list[_Fill]]
    notes: dict[str, list[Note]]

    def size(self, section: str) -> int:
        return int(self.sections[section][0]["sh_size"]) if section in self.sections else 0


class DeviceCode:
    """The kernels in an object file for one architecture."""

    def __init__(self, path: Path) -> None:
        self._images = [_read(content) for content in _cubins(path)]

    def _of(self, kernel: str) -> _Image:
        section = f".text.{kernel}"
        found = next((image for image in self._images if section in image.sections), None)
        if found is None:
            raise Different(f"{readable(kernel)}: no machine code of that name")
        return found

    def compare(self, kernel: str, other: DeviceCode, others: str) -> bytes:
        """Compare a kernel with one of another object; its instructions. Raises Different."""
        pair = _Pair(self._of(kernel), other._of(others))
        pair.compare(f".text.{kernel}", f".text.{others}")
        return pair.old.sections[f".text.{kernel}"][1]


class _Pair:
    """Two images whose sections are compared; `_same` are the pairs of those so far."""

    def __init__(self, old: _Image, new: _Image) -> None:
        self.old, self.new = old, new
        self._same: dict[str, str] = {}

    def compare(self, one: str, other: str) -> None:
        """Compare two sections and all that they refer to; raises Different."""
        self._same[one] = other
        (header, content), (other_header, other_content) = (
            self.old.sections[one],
            self.new.sections[other],
        )
        what = _kernel(one)
        if content != other_content or header["sh_size"] != other_header["sh_size"]:
            raise Different(f"{readable(what)}: its instructions or constants")
        if header["sh_addralign"] != other_header["sh_addralign"]:
            raise Different(f"{readable(what)}: its alignment")
        if one.startswith(".text."):
            self._compare_notes(what, _kernel(other))
            self._compare_constants(what, _kernel(other))
        for prefix in SIZES:
            sizes = self.old.size(prefix + what), self.new.size(prefix + _kernel(other))
            if sizes[0] != sizes[1]:
                raise Different(
                    f"{readable(what)}: {sizes[1]} B, not {sizes[0]}, in {prefix.strip('.')}"
                )
        self._compare_references(one, other)

    def _compare_notes(self, kernel: str, other: str) -> None:
        if self.old.notes.get(kernel) != self.new.notes.get(other):
            raise Different(f"{readable(kernel)}: its registers, its frame or bounds of its launch")

    def _compare_constants(self, kernel: str, other: str) -> None:
        """Compare what the two kernels may read, by bank."""
        banks = [
            {name.removesuffix(f".{of}"): name for name in sections if _is_constant(name, of)}
            for sections, of in ((self.old.sections, kernel), (self.new.sections, other))
        ]
        if banks[0].keys() != banks[1].keys():
            raise Different(f"{readable(kernel)}: its constants")
        for bank, section in banks[0].items():
            if self._same.get(section) is None:
                self.compare(section, banks[1][bank])

    def _compare_references(self, one: str, other: str) -> None:
        what = _kernel(one)
        fills = self.old.relocations.get(one, []), self.new.relocations.get(other, [])
        if [fill.shape for fill in fills[0]] != [fill.shape for fill in fills[1]]:
            raise Different(f"{readable(what)}: what it refers to")
        for first, second in zip(*fills, strict=True):
            sections = first.where in self.old.sections, second.where in self.new.sections
            if not any(sections) and first.where == second.where:
                continue
            if not all(sections) or self._same.get(first.where, second.where) != second.where:
                names = readable(second.where), readable(first.where)
                raise Different(f"{readable(what)}: it refers to {names[0]}, not {names[1]}")
            if first.where not in self._same:
                self.compare(first.where, second.where)


def _kernel(section: str) -> str:
    return section.removeprefix(".text.")


def _is_constant(section: str, kernel: str) -> bool:
    """Whether it holds constants of the kernel or of the whole image, other than parameters."""
    return CONSTANTS.fullmatch(section.removesuffix(f".{kernel}")) is not None


def _notes(content: bytes) -> Iterator[Note]:
    """The notes in a section, each with its kind."""
    at = 0
    while at < len(content):
        form, kind, value = struct.unpack_from("<BBH", content, at)
        end = at + 4 + (value if form == SIZED else 0)
        yield kind, content[at + 4 : end] if form == SIZED else content[at + 2 : end]
        at = -(-end // 4) * 4


def _notes_by_function(elf: ELFFile, table: SymbolTableSection) -> dict[str, list[Note]]:
    """Without the numbers of symbols, which change with names."""
    found: dict[str, list[Note]] = {}
    for section in elf.iter_sections():
        if section.name == OF_IMAGE:
            for kind, text in _notes(section.data()):
                (symbol,) = struct.unpack_from("<I", text)
                found.setdefault(table.get_symbol(symbol).name, []).append((kind, text[4:]))
        elif section.name.startswith(OF_KERNEL):
            notes = found.setdefault(section.name.removeprefix(OF_KERNEL), [])
            for kind, text in _notes(section.data()):
                numbers = NAMES_OF_SYMBOLS.get(kind, 0)
                notes.append((kind, b"" if numbers is None else text[numbers:]))
    return {name: sorted(notes) for name, notes in found.items()}


def _cubins(path: Path) -> Iterator[bytes]:
    """The images of all architectures in an object file."""
    with tempfile.TemporaryDirectory() as folder:
        cuobjdump(path, "-xelf", "all", folder=Path(folder))
        for cubin in sorted(Path(folder).glob("*.cubin")):
            yield cubin.read_bytes()


def _read(content: bytes) -> _Image:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        elf = ELFFile(file)
        names = [section.name for section in elf.iter_sections()]
        sections = {
            section.name: (
                dict(section.header),
                b"" if section["sh_type"] == "SHT_NOBITS" else section.data(),
            )
            for section in elf.iter_sections()
        }
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        relocations: dict[str, list[_Fill]] = {}
        for section in elf.iter_sections():
            if isinstance(section, RelocationSection) and section["sh_info"] < len(names):
                fills = relocations.setdefault(names[section["sh_info"]], [])
                for each in section.iter_relocations():
                    symbol = table.get_symbol(each["r_info_sym"])
                    index = symbol["st_shndx"]
                    where = names[index] if isinstance(index, int) else symbol.name
                    addend = each["r_addend"] if section.is_RELA() else 0
                    shape = each["r_offset"], each["r_info_type"], addend, symbol["st_value"]
                    fills.append(_Fill(shape, where))
        return _Image(sections, relocations, _notes_by_function(elf, table))
