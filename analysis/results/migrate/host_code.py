"""Compares what two programs do on the host, function by function.

The walk begins at pairs of entry points and compares bytes. If both refer to something, the two
targets become a pair themselves, and nothing may be in two pairs. So names, addresses and the file
of a function do not matter. Strings and constants are compared by their content.

The walk ignores the tables for unwinding exceptions, because no instruction refers to them.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import pycxxfilt

from analysis.results.migrate.objects import CALL, Place, Program, Relocation, Section

REGISTER: Final = "__cudaRegisterFunction"
"""The call that registers a kernel with CUDA."""
REGISTER_VARIABLES: Final = ("__cudaRegisterVar", "__cudaRegisterManagedVar")
"""Calls that register variables, which the host then accesses by name."""
TYPE_NAME: Final = "_ZTS"
"""Begins the symbol of a type's name, which is compared as a name: it may differ."""

INTERNAL: Final = re.compile(
    r"pybind11_(?!exec|init)"
    r"|.*::initialize<pybind11::(detail::|object \(\*&\)\(pybind11::handle, pybind11::bytes const&)"
)
"""Begins the names of functions that pybind11 adds to every module."""
CONSTRUCTOR: Final = re.compile(r"^(?:[\w:]|\(anonymous namespace\))*\b(\w+)::\1\(")
"""Begins a constructor as it is demangled, of a class that is no template."""
LIBRARY_VARIABLE: Final = re.compile(r"(_INTERNAL_\w+::)?(cuda|cub|thrust)::")
"""Begins a variable on the device that belongs to CUDA's C++ libraries."""
LIBRARY: Final = re.compile(r"pybind11::[^<(]*\(")
"""Begins a function of pybind11 that is not a template and thus holds no code of the project."""
PYBIND: Final = "_ZZN8pybind1112cpp_function10initialize"
DISPATCHER: Final = "4_FUN"
"""Prefix and infix of the mangled names of pybind11's dispatch functions."""
LITERAL: Final = re.compile(r"(?<=A)\d+(?=_K?c)")
"""Length of a string literal, such as a docstring, in the mangled name of a dispatch function."""
RETURNED: Final = re.compile(r"&&?, ((?:[\w:<]|\(anonymous namespace\))+)[^()]* \(\*\)\(")
"""First word of the return type of a dispatch function."""
CONSTANTS: Final = (".data.rel.ro", ".rodata")
"""Prefixes of the names of sections of constants, which may hold pointers to functions."""
OF_LIBRARIES: Final = re.compile(r"\b(pybind11\w*|std|__\w+)(::|\()|^\.|\.cold$|^(_init|_GLOBAL)")
"""Matches the names of functions that are not the project's, and of parts of functions."""
FUNDAMENTAL: Final = {"void", "bool", "char", "short", "int", "long", "unsigned", "float", "double"}


class Different(Exception):
    """Two programs differ; the message names the first function that does."""


KernelPair = Callable[[str, str], bytes]
"""Compares two kernels by their names on the device and returns the instructions; raises
Different."""


class Walk:
    """Compares two programs from pairs of entry points on."""

    def __init__(
        self,
        old: Program,
        new: Program,
        compare_kernels: KernelPair,
        *,
        trust_library: bool = False,
    ) -> None:
        """`trust_library`: compare functions of pybind11 that are no templates by their names.
        The rest of the bindings decides what compilers inline into them."""
        self._old, self._new = old, new
        self._trust_library = trust_library
        self._compare_kernels = compare_kernels
        self._kernels = kernels_by_stub(old), kernels_by_stub(new)
        self._pairs: dict[tuple[int, int], tuple[int, int]] = {}
        self._taken: dict[tuple[int, int], tuple[int, int]] = {}
        self._queue: deque[tuple[Place, Place]] = deque()
        self._digest = hashlib.sha256()

    def digest(self) -> str:
        """SHA-256 in hex of all that was compared, without names and addresses."""
        return self._digest.hexdigest()

    def compare(self, entries: Sequence[tuple[Place, Place]]) -> None:
        """Compare all that is reachable from `entries`; raises Different."""
        for old, new in entries:
            self._pair(old, new, self._old.name(old))
        while self._queue:
            old, new = self._queue.popleft()
            self._compare_sections(old, new)

    def _pair(self, old: Place, new: Place, where: str) -> None:
        """Note that these two are the same place; compare their sections if that is new."""
        sections = (old.object, old.section), (new.object, new.section)
        known = self._pairs.get(sections[0])
        if old.offset != new.offset or known not in (None, sections[1]):
            self._differ(where, "it refers to other code or data")
        if known is not None:
            return
        if sections[1] in self._taken:
            self._differ(where, "it refers to other code or data")
        self._pairs[sections[0]] = sections[1]
        self._taken[sections[1]] = sections[0]
        self._queue.append((old, new))

    def _compare_sections(self, old: Place, new: Place) -> None:
        one, other = self._old.section(old), self._new.section(new)
        where = self._old.name(old)
        stubs = (old.object, old.section), (new.object, new.section)
        kernels = [found.get(stub) for found, stub in zip(self._kernels, stubs, strict=True)]
        if kernels[0] is not None and kernels[1] is not None:
            self._digest.update(b"\0kernel\0" + self._compare_kernels(kernels[0], kernels[1]))
        elif kernels != [None, None]:
            self._differ(where, "one of the two launches a kernel")
        if where.startswith(TYPE_NAME):
            return
        if (one.flags, one.size) != (other.flags, other.size) or one.masked != other.masked:
            self._differ(where, "its instructions or constants")
        if one.alignment != other.alignment:
            self._differ(where, f"aligned to {other.alignment} bytes, not {one.alignment}")
        places = [(each.at, each.type) for each in one.relocations]
        if places != [(each.at, each.type) for each in other.relocations]:
            self._differ(where, "where it refers to something")
        self._digest.update(b"\0section\0" + one.masked + repr(places).encode())
        for pair in zip(one.relocations, other.relocations, strict=True):
            self._compare_targets(old, new, *pair)

    def _compare_targets(self, old: Place, new: Place, one: Relocation, other: Relocation) -> None:
        where = self._old.name(old)
        targets = self._old.target(old, one), self._new.target(new, other)
        first, second = targets
        if isinstance(first, str) or isinstance(second, str):
            if first != second:
                self._differ(where, f"it refers to {readable(first)}, not {readable(second)}")
            self._digest.update(f"\0name\0{first}".encode())
            return
        sections = self._old.section(first), self._new.section(second)
        if all(section.is_merged for section in sections):
            contents = [
                entries_at(section, place.offset)
                for section, place in zip(sections, (first, second), strict=True)
            ]
            if contents[0] != contents[1]:
                self._differ(where, "a string or constant that it uses")
            self._digest.update(b"\0content\0" + b"\0".join(contents[0]))
            return
        name = self._old.name(first)
        if self._trust_library and is_of_library(name) and name == self._new.name(second):
            self._digest.update(f"\0name\0{name}".encode())
            return
        self._pair(first, second, where)

    def _differ(self, where: str, what: str) -> None:
        raise Different(f"{readable(where)}: {what}")


def is_of_library(symbol: str) -> bool:
    """Whether a symbol is of a function of pybind11 that is not a template."""
    return LIBRARY.match(readable(symbol)) is not None


def readable(name: Place | str) -> str:
    """A symbol as it is written in the source."""
    if not isinstance(name, str):
        return "code or data that the other lacks"
    symbol = name.partition("+")[0]
    if not symbol.startswith("_Z"):
        return name  # `s` would be read as the type short
    try:
        return str(pycxxfilt.itanium_demangle(symbol) or name)
    except ValueError:  # it cannot parse some of GCC's names of templates
        return name


def entries_at(section: Section, offset: int) -> list[bytes]:
    """The content of a section of merged entries at an offset: a string up to its end, or a
    constant; two constants where the offset is between them."""
    if section.has_strings:
        return [section.content[offset:].split(b"\0", 1)[0]]
    size = section.entry_bytes
    starts = {offset // size * size, -(-offset // size) * size}
    return [section.content[start : start + size] for start in sorted(starts)]


def kernels_by_stub(program: Program) -> dict[tuple[int, int], str]:
    """The name on the device of each kernel, by the section of its stub on the host."""
    found: dict[tuple[int, int], str] = {}
    for number, each in enumerate(program.objects):
        for index, section in enumerate(each.sections):
            place = Place(number, index, 0)
            if section.is_code:
                _require_no_variables(program, place)
            if section.is_code and _calls(program, place, REGISTER):
                found.update(_registered(program, place))
    return found


def _require_no_variables(program: Program, place: Place) -> None:
    """Different where this function registers a variable that is not of CUDA's libraries."""
    name = ""
    calls = tuple(f"{call}+" for call in REGISTER_VARIABLES)
    for relocation in sorted(program.section(place).relocations):
        target = program.target(place, relocation)
        if isinstance(target, Place):
            section = program.section(target)
            if section.has_strings:
                name = readable(entries_at(section, target.offset)[0].decode())
        elif target.startswith(calls) and not LIBRARY_VARIABLE.match(name):
            where = readable(program.name(place))
            raise Different(f"{where}: it registers the variable {name}")


def _calls(program: Program, place: Place, name: str) -> bool:
    targets = (program.target(place, each) for each in program.section(place).relocations)
    return any(isinstance(target, str) and target.startswith(f"{name}+") for target in targets)


def _registered(program: Program, place: Place) -> Iterator[tuple[tuple[int, int], str]]:
    """Stub and name of each kernel that this function registers: what it loads before each call."""
    stub: tuple[int, int] | None = None
    name = ""
    for relocation in sorted(program.section(place).relocations):
        target = program.target(place, relocation)
        if isinstance(target, str):
            if target.startswith(f"{REGISTER}+") and stub is not None:
                yield stub, name
            continue
        section = program.section(target)
        if section.is_code:
            stub = target.object, target.section
        elif section.has_strings:
            name = entries_at(section, target.offset)[0].decode()


class Compared(NamedTuple):
    """The compared part, `module` or `timed functions`, and its digest. `apart_from` is the
    first differing function that is not timed; empty if there is none."""

    what: str
    digest: str
    apart_from: str = ""


def compare_programs(old: Program, new: Program, compare_kernels: KernelPair) -> Compared:
    """The parts that are equal in both.

    If whole modules differ, as where only what binds a variant has changed, the functions that are
    timed are compared by their names: those of the variant that its bindings call, and those of the
    bindings that lead to one. Of pybind11, only templates are compared then. Raises Different.
    """
    entries = _loaded(old), _loaded(new)
    whole = Walk(old, new, compare_kernels)
    try:
        if len(entries[0]) != len(entries[1]):
            raise Different("what runs when the module is loaded: another number of functions")
        whole.compare(list(zip(*entries, strict=True)))
        return Compared("module", whole.digest())
    except Different as difference:
        apart_from = str(difference)
        timed = _timed(old), _timed(new)
        if not timed[0] or timed[0].keys() != timed[1].keys():
            raise difference from None
    walk = Walk(old, new, compare_kernels, trust_library=True)
    walk.compare([(timed[0][name], timed[1][name]) for name in sorted(timed[0])])
    return Compared("timed functions", walk.digest(), apart_from)


def _loaded(program: Program) -> list[Place]:
    """The code that runs when the module is imported, except for the registration of kernels."""
    init = program.named("PyInit_variant")
    assert init is not None, "bindings define the module"
    return [init, *_initialisers(program)]


def _initialisers(program: Program) -> Iterator[Place]:
    for number, each in enumerate(program.objects):
        for index, section in enumerate(each.sections):
            place = Place(number, index, 0)
            if section.name.startswith(".init_array") and not _registers_kernels(program, place):
                yield place


def _registers_kernels(program: Program, initialiser: Place) -> bool:
    targets = (program.target(initialiser, r) for r in program.section(initialiser).relocations)
    called = (target for target in targets if isinstance(target, Place))
    return any(_calls(program, target, "__cudaRegisterFatBinary") for target in called)


def _timed(program: Program) -> dict[str, Place]:
    """Timed functions by name: those of the variant that the bindings call, their callers in the
    bindings, and functions that Python calls, since calls of virtual functions name nothing.
    Functions of the bindings that set up an object are not timed."""
    variant, *others = program.objects
    asked = set().union(*(each.undefined for each in others))
    entries = [
        place for name in variant.defined if name in asked and (place := program.named(name))
    ]
    found: list[Place] = []
    waiting = [place._replace(offset=0) for place in entries]
    while waiting:
        place = waiting.pop()
        if place not in found:
            found.append(place)
            callers = _callers(program)[place]
            waiting += [each for each in callers if not _makes_object(program.name(each))]
    places = dict.fromkeys([*found, *_called_by_python(program), *_given_to_python(program)])
    named = [(program.name(place), place) for place in places]
    return _by_name(pair for pair in named if not INTERNAL.match(readable(pair[0])))


def _by_name(found: Iterable[tuple[str, Place]]) -> dict[str, Place]:
    """Functions by name without the lengths of literals, so that docstrings may change; of several
    that have the same name then, the later ones are numbered."""
    named: dict[str, list[Place]] = defaultdict(list)
    for name, place in found:
        is_dispatcher = name.startswith(PYBIND) and DISPATCHER in name
        named[LITERAL.sub("", name) if is_dispatcher else name].append(place)
    return {
        f"{name}{f' {number}' if number else ''}": place
        for name, places in named.items()
        for number, place in enumerate(sorted(places))
    }


def _called_by_python(program: Program) -> Iterator[Place]:
    for number, each in enumerate(program.objects):
        for symbol in each.symbols:
            is_call = DISPATCHER in symbol.name and symbol.name.startswith(PYBIND)
            if not is_call or symbol.name.endswith(".cold") or symbol.section is None:
                continue
            if not sets_up(readable(symbol.name)):
                yield Place(number, symbol.section, 0)


def _given_to_python(program: Program) -> Iterator[Place]:
    """The functions of the bindings whose address is taken, as that of a method which one of
    pybind11's dispatchers calls through a pointer."""
    for number, each in enumerate(program.objects[1:], 1):
        for index, section in enumerate(each.sections):
            if not section.is_code and not section.name.startswith(CONSTANTS):
                continue
            place = Place(number, index, 0)
            for relocation in section.relocations:
                target = program.target(place, relocation)
                if isinstance(target, str) or target.offset != 0:
                    continue
                if section.is_code and not takes_address(section, relocation):
                    continue
                name = program.name(target)
                if program.section(target).is_code and not OF_LIBRARIES.search(readable(name)):
                    yield target


def takes_address(code: Section, relocation: Relocation) -> bool:
    """Whether the instruction loads an address relative to itself, and is neither a call nor a
    jump: the byte before the offset has a ModRM byte's bits for that."""
    return relocation.type != CALL and code.content[relocation.at - 1] & 0xC7 == 0x05


def sets_up(dispatcher: str) -> bool:
    """Whether pybind11's dispatcher, as it is demangled, is of a constructor, or of a function of
    the module that returns an object of a class of the project."""
    if "is_new_style_constructor" in dispatcher:
        return True
    returned = RETURNED.search(dispatcher)
    if "pybind11::scope" not in dispatcher or returned is None:
        return False
    word = returned[1].removeprefix("std::unique_ptr<")
    return not word.startswith(("std::", "pybind11::")) and word not in FUNDAMENTAL


def _makes_object(symbol: str) -> bool:
    """Whether a function is a constructor, or a dispatcher that sets up an object."""
    name = readable(symbol)
    is_dispatcher = symbol.startswith(PYBIND) and DISPATCHER in symbol
    return sets_up(name) if is_dispatcher else CONSTRUCTOR.search(name) is not None


@cache
def _callers(program: Program) -> Mapping[Place, list[Place]]:
    """The functions that call each function."""
    found: dict[Place, list[Place]] = defaultdict(list)
    for number, each in enumerate(program.objects):
        for index, section in enumerate(each.sections):
            place = Place(number, index, 0)
            for relocation in section.relocations if section.is_code else ():
                target = program.target(place, relocation)
                if relocation.type == CALL and isinstance(target, Place):
                    found[target._replace(offset=0)].append(place)
    return found
