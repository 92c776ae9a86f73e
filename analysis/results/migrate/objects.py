"""Object files as a graph: functions and data, and what each refers to.

Every function and datum is compiled into a separate section, so that every reference from one to
another is a relocation and the bytes around it hold no address. `Program` follows references
through the objects that are linked into one module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

SECTION_FLAGS: Final = ("-ffunction-sections", "-fdata-sections")
"""With which objects are compiled for `Program`."""

RELATIVE_TYPES: Final = {2, 4, 9, 41, 42}
"""Types of relocations on x86-64 that count from the end of their four bytes: PC32, PLT32 and the
three of GOTPCREL."""
CALL: Final = 4
"""The type of the relocation of a call: PLT32."""
FIELD_BYTES: Final = {1: 8, 24: 8, 25: 8}
"""Bytes that a relocation of this type fills in; all others fill in four."""


class Relocation(NamedTuple):
    """A reference at `at` in a section: its type, its symbol's number, its addend."""

    at: int
    type: int
    symbol: int
    addend: int


@dataclass(frozen=True)
class Symbol:
    """`section` is the number of the one that defines it, None where another object does."""

    name: str
    section: int | None
    value: int
    is_global: bool
    is_weak: bool


@dataclass(frozen=True)
class Section:
    """`flags` are those of ELF, `size` counts bytes that are not stored, too. `alignment` is that
    of its address, in bytes."""

    name: str
    flags: int
    size: int
    alignment: int
    entry_bytes: int
    content: bytes
    relocations: tuple[Relocation, ...]

    @property
    def is_code(self) -> bool:
        return bool(self.flags & SH_FLAGS.SHF_EXECINSTR)

    @property
    def is_merged(self) -> bool:
        """Whether the linker merges equal entries, so that only their content counts."""
        return bool(self.flags & SH_FLAGS.SHF_MERGE)

    @property
    def has_strings(self) -> bool:
        return bool(self.flags & SH_FLAGS.SHF_STRINGS)

    @cached_property
    def masked(self) -> bytes:
        """The content with zeros where relocations fill in addresses."""
        content = bytearray(self.content)
        for relocation in self.relocations:
            length = FIELD_BYTES.get(relocation.type, 4)
            content[relocation.at : relocation.at + length] = bytes(length)
        return bytes(content)


class Object:
    """One object file."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            elf = ELFFile(file)
            self.sections = list(_sections(elf))
            table = elf.get_section_by_name(".symtab")
            assert isinstance(table, SymbolTableSection)
            self.symbols = [
                Symbol(
                    symbol.name,
                    index if isinstance(index := symbol["st_shndx"], int) else None,
                    symbol["st_value"],
                    is_global=symbol["st_info"]["bind"] != "STB_LOCAL",
                    is_weak=symbol["st_info"]["bind"] == "STB_WEAK",
                )
                for symbol in table.iter_symbols()
            ]

    @cached_property
    def defined(self) -> dict[str, Symbol]:
        """The symbols that other objects may refer to, by name."""
        return {s.name: s for s in self.symbols if s.is_global and s.section is not None}

    @cached_property
    def undefined(self) -> set[str]:
        """The names that other objects have to define."""
        return {s.name for s in self.symbols if s.is_global and s.section is None and s.name}


def _sections(elf: ELFFile) -> Iterator[Section]:
    relocations: dict[int, tuple[Relocation, ...]] = {}
    for section in elf.iter_sections():
        if isinstance(section, RelocationSection):
            relocations[section["sh_info"]] = tuple(
                Relocation(
                    each["r_offset"], each["r_info_type"], each["r_info_sym"], each["r_addend"]
                )
                for each in section.iter_relocations()
            )
    for number, section in enumerate(elf.iter_sections()):
        is_stored = section["sh_type"] != "SHT_NOBITS"
        yield Section(
            section.name,
            section["sh_flags"],
            section["sh_size"],
            section["sh_addralign"],
            section["sh_entsize"],
            section.data() if is_stored else b"",
            relocations.get(number, ()),
        )


class Place(NamedTuple):
    """An address in a section of an object."""

    object: int
    section: int
    offset: int


class Program:
    """The objects of one module, in the order in which they are linked."""

    def __init__(self, objects: Sequence[Object]) -> None:
        self.objects = objects

    def section(self, place: Place) -> Section:
        return self.objects[place.object].sections[place.section]

    def named(self, name: str) -> Place | None:
        """Where a name is defined: its first strong definition, else its first weak one."""
        found = [
            (symbol.is_weak, number, symbol)
            for number, each in enumerate(self.objects)
            if (symbol := each.defined.get(name))
        ]
        if not found:
            return None
        _, number, symbol = min(found, key=lambda one: one[:2])
        assert symbol.section is not None
        return Place(number, symbol.section, symbol.value)

    def target(self, place: Place, relocation: Relocation) -> Place | str:
        """The target of a relocation in the section of `place`: a place, or the name of a
        library's symbol."""
        symbol = self.objects[place.object].symbols[relocation.symbol]
        bias = 4 if relocation.type in RELATIVE_TYPES else 0
        if symbol.is_global and symbol.name:
            found = self.named(symbol.name)
            if found is None:
                return f"{symbol.name}+{relocation.addend + bias}"
            return found._replace(offset=found.offset + relocation.addend + bias)
        assert symbol.section is not None, "a local symbol is defined where it is used"
        return Place(place.object, symbol.section, symbol.value + relocation.addend + bias)

    @cached_property
    def names(self) -> Mapping[tuple[int, int], str]:
        """A name of each section that has one: of the function or the data in it."""
        return {
            (number, symbol.section): symbol.name
            for number, each in enumerate(self.objects)
            for symbol in each.symbols
            if symbol.section is not None and symbol.name
        }

    def name(self, place: Place) -> str:
        section = self.section(place).name
        return self.names.get((place.object, place.section), section)
