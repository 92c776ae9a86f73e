"""Only host code that a refactoring leaves unchanged is proved the same."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

import pybind11
import pytest

from analysis.results.migrate.host_code import (
    CONSTRUCTOR,
    LIBRARY_VARIABLE,
    Different,
    compare_programs,
    readable,
    sets_up,
    takes_address,
)
from analysis.results.migrate.objects import SECTION_FLAGS, Object, Program, Relocation, Section
from tests.compiled import run, toolchain

BINDINGS = """
#include "operator.h"
namespace {
void enqueue(int* data, long count) { launch(data, count); }
void bind(const char* what) { require(what != nullptr, "bind: expected a name"); }
}  // namespace
extern "C" __attribute__((visibility("default"))) void** PyInit_variant() {
  static void* methods[] = {reinterpret_cast<void*>(enqueue), reinterpret_cast<void*>(bind)};
  return methods;
}
"""
OPERATOR = """
#pragma once
#include <cstdio>
#include <cstdlib>
struct Allocator {
  virtual void* take(long size) = 0;
  virtual void give(void* block) = 0;
};
inline void require(bool holds, const char* what) {
  if (!holds) {
    std::puts(what);
    std::abort();
  }
}
void launch(int* data, long count);
"""
FIRST = "__attribute__((noinline)) long first(long count) { return count % kStep; }\n"
IDLE = "long idle() { return 7; }\n"
VARIANT = """
#include "operator.h"
namespace {
constexpr long kStep = 4;
struct Pool final : Allocator {
  void* take(long size) override { return std::malloc(size); }
  void give(void* block) override { std::free(block); }
};
__attribute__((noinline)) long first(long count) { return count % kStep; }
__attribute__((noinline)) long second(long count) { return count / kStep * 3; }
template <int kTimes>
__attribute__((noinline)) void repeat(int* data) {
  for (int turn = 0; turn < kTimes; ++turn) data[turn] = data[turn + 1] * 5;
}
alignas(64) double factors[] = {0.5, 0.25, 0.125};
}  // namespace
void launch(int* data, long count) {
  static Pool pool;
  Allocator* volatile kept = data ? &pool : nullptr;
  Allocator* allocator = kept;
  require(allocator != nullptr, "data: expected memory");
  int* copy = static_cast<int*>(allocator->take(count * 4));
  for (long i = 0; i < count; ++i) copy[i] = data[i];
  data[first(count)] = copy[second(count)];
  data[9] += static_cast<int>(factors[data[1] % 3] * 8.75);
  repeat<3>(data);
  allocator->give(copy);
}
"""

SAME = {
    "a comment": [("long first(", "/* where to begin */ long first(")],
    "white space": [("data[9] +=", "data[9]   +=\n")],
    "a renamed function": [("first(", "remainder_of(")],
    "two functions that change names": [("first(", "x("), ("second(", "first("), ("x(", "second(")],
    "a renamed variable": [("copy", "staged")],
    "a renamed class": [("Pool", "HostPool")],
    "a renamed template and its parameter": [("repeat<", "fold<"), ("kTimes", "kTurns"),
                                             ("void repeat", "void fold")],
    "a renamed constant": [("kStep", "kRowsPerStep")],
    "a literal instead of a constant": [("/ kStep", "/ 4")],
    "another order of functions": [(FIRST, ""), ("template <int", f"{FIRST}template <int")],
    "an alias of a type": [("static Pool pool", "using Host = Pool;\n  static Host pool")],
    "a function that nothing calls": [("template <int", f"{IDLE}template <int")],
}  # fmt: skip
DIFFERENT = {
    "another constant": [("kStep = 4", "kStep = 8")],
    "another factor of a loop": [("repeat<3>", "repeat<2>")],
    "swapped arguments": [("copy[i] = data[i]", "data[i] = copy[i]")],
    "the other function": [("data[first(count)]", "data[second(count)]")],
    "one more call": [("  repeat<3>", '  std::puts("");\n  repeat<3>')],
    "another string": [("expected memory", "expected a pointer")],
    "another number in a table": [("0.25, 0.125", "0.25, 0.0625")],
    "another floating constant": [("8.75", "8.5")],
    "another library function": [("std::malloc(size)", "std::calloc(size, 1)")],
    "another alignment": [("alignas(64)", "alignas(128)")],
    "another width": [("count * 4", "count * 8")],
    "a loop that ends earlier": [("i < count; ++i) copy", "i < count - 1; ++i) copy")],
    "functions that change places in the virtual table": [("allocator->give(copy)",
                                                           "allocator->take(count)")],
    "another order of statements": [
        ("  repeat<3>(data);\n", ""), ("  data[9] +=", "  repeat<3>(data);\n  data[9] +=")
    ],
}  # fmt: skip


def program(folder: Path, bindings: str, operator: str, variant: str) -> Program:
    folder.mkdir()
    texts = {"operator.h": operator, "variant.cpp": variant, "bindings.cpp": bindings}
    for name, text in texts.items():
        (folder / name).write_text(text)
    objects = []
    for name in ("variant", "bindings"):
        out = folder / f"{name}.o"
        includes = [f"-I{pybind11.get_include()}", f"-I{sysconfig.get_path('include')}"]
        flags = [*includes, "-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", *SECTION_FLAGS]
        run(toolchain().cxx, *flags, "-c", str(folder / f"{name}.cpp"), "-o", str(out))
        objects.append(Object(out))
    return Program(objects)


def edited(text: str, edits: list[tuple[str, str]]) -> str:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


def no_kernels(one: str, other: str) -> bytes:
    raise AssertionError(f"there is no kernel {one}")


def compare(old: Program, new: Program) -> str:
    compared = compare_programs(old, new, no_kernels)
    assert len(compared.digest) == 64
    assert bool(compared.apart_from) == (compared.what == "timed functions")
    return compared.what


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return program(tmp_path_factory.mktemp("old") / "code", BINDINGS, OPERATOR, VARIANT)


@pytest.mark.parametrize("change", SAME)
def test_a_refactoring_is_proved_the_same(before: Program, tmp_path: Path, change: str) -> None:
    after = program(tmp_path / "code", BINDINGS, OPERATOR, edited(VARIANT, SAME[change]))
    assert compare(before, after) == "module"
    assert compare_programs(before, after, no_kernels) == compare_programs(
        before, before, no_kernels
    )


def test_a_function_may_move_to_a_shared_header(before: Program, tmp_path: Path) -> None:
    helper = "inline void copy_all(int* to, const int* from, long count) {\n"
    helper += "  for (long i = 0; i < count; ++i) to[i] = from[i];\n}\n"
    loop = "for (long i = 0; i < count; ++i) copy[i] = data[i];"
    variant = edited(VARIANT, [(loop, "copy_all(copy, data, count);")])
    after = program(tmp_path / "code", BINDINGS, OPERATOR + helper, variant)
    assert compare(before, after) == "module"


@pytest.mark.parametrize("change", DIFFERENT)
def test_change_of_the_timed_code_is_detected(before: Program, tmp_path: Path, change: str) -> None:
    after = program(tmp_path / "code", BINDINGS, OPERATOR, edited(VARIANT, DIFFERENT[change]))
    with pytest.raises(Different, match=r"launch|first|second|repeat|Pool|factors"):
        compare(before, after)


def test_another_order_of_virtual_functions_is_seen(before: Program, tmp_path: Path) -> None:
    take, give = "  virtual void* take(long size) = 0;\n", "  virtual void give(void* block) = 0;\n"
    operator = edited(OPERATOR, [(take + give, give + take)])
    after = program(tmp_path / "code", BINDINGS, operator, VARIANT)
    with pytest.raises(Different):
        compare(before, after)


def test_bindings_may_differ(before: Program, tmp_path: Path) -> None:
    """Then only the timed functions are compared."""
    bindings = edited(BINDINGS, [("expected a name", "expected a name, got none")])
    after = program(tmp_path / "code", bindings, OPERATOR, VARIANT)
    assert compare(before, after) == "timed functions"


def test_the_caller_in_the_bindings_is_timed(before: Program, tmp_path: Path) -> None:
    bindings = edited(BINDINGS, [("launch(data, count); }", "launch(data, count + 1); }")])
    after = program(tmp_path / "code", bindings, OPERATOR, VARIANT)
    with pytest.raises(Different):
        compare(before, after)


DESCRIBED = """
namespace pybind11 {
__attribute__((noinline)) inline void describe(const char* what) { std::puts(what); }
template <class T>
__attribute__((noinline)) inline void convert(T* data) { std::puts("converted"); ++*data; }
}  // namespace pybind11
"""


@pytest.mark.parametrize(("changed", "is_same"), [("puts(what)", True), ("++*data", False)])
def test_bindings_may_change_the_library_but_not_its_templates(
    tmp_path: Path, changed: str, is_same: bool
) -> None:
    call = "launch(data, count); }"
    calls = f'pybind11::describe("enqueue"), pybind11::convert(data), {call}'
    bindings = edited(BINDINGS, [(call, calls)])
    before = program(tmp_path / "old", bindings, OPERATOR + DESCRIBED, VARIANT)
    other = edited(DESCRIBED, [(changed, f'{changed}, std::puts("")')])
    after = program(tmp_path / "new", bindings, OPERATOR + other, VARIANT)
    if is_same:
        assert compare(before, after) == "timed functions"
    else:
        with pytest.raises(Different, match="convert"):
            compare(before, after)


PYBIND = """
#include <pybind11/pybind11.h>
namespace py = pybind11;
struct Method {
  virtual ~Method() = default;
  virtual void launch(long stream) = 0;
};
Method* make(int count);
class Bound {
 public:
  explicit Bound(int count) : method_(make(count)) {}
  void launch(long stream) { method_->launch(stream); }

 private:
  Method* method_;
};
struct Options {
  int count;
};
PYBIND11_MODULE(variant, m) {
  py::class_<Bound>(m, "Bound").def("launch", &Bound::launch, "Launch.");
  py::class_<Options>(m, "Options");
  m.def("options", [](int count) {
    if (count < 0) throw py::value_error("count: expected at least 0");
    return Options{count};
  });
  m.def("bind", [](const Options& options) { return Bound(options.count); });
}
"""
METHOD = """
struct Method {
  virtual ~Method() = default;
  virtual void launch(long stream) = 0;
};
namespace {
struct Counting final : Method {
  explicit Counting(int from) : count(from) {}
  void launch(long stream) override { count += stream; }
  long count;
};
}  // namespace
Method* make(int count) { return new Counting(count); }
"""


@pytest.mark.long
def test_caller_of_a_virtual_function_is_timed(tmp_path: Path) -> None:
    """No symbol leads from the call to the variant; that Python calls it does."""
    before = program(tmp_path / "old", PYBIND, "", METHOD)
    message = edited(PYBIND, [("at least 0", "none below 0")])
    assert compare(before, program(tmp_path / "new", message, "", METHOD)) == "timed functions"
    docstring = edited(PYBIND, [("Launch.", "Launch on a stream.")])
    assert compare(before, program(tmp_path / "doc", docstring, "", METHOD)) == "timed functions"
    launch = edited(message, [("launch(stream); }", "launch(stream + 1); }")])
    with pytest.raises(Different):
        compare(before, program(tmp_path / "third", launch, "", METHOD))


@pytest.mark.parametrize(
    ("dispatcher", "expected"),
    [
        ("<L, Bound, int, pybind11::scope>(L&&, (anonymous namespace)::Bound (*)(int))", True),
        ("<L, std::unique_ptr<Bound>, pybind11::scope>(L&, std::unique_ptr<Bound> (*)())", True),
        ("<L, void, pybind11::detail::is_new_style_constructor>(L&&, void (*)(int))", True),
        ("<L, void, Bound*, pybind11::is_method>(L&&, void (*)(Bound*))", False),
        ("<L, Bound, Bound*, pybind11::is_method>(L&&, Bound (*)(Bound*))", False),
        ("<L, void, int, pybind11::scope>(L&&, void (*)(int))", False),
        ("<L, std::vector<int>, pybind11::scope>(L&&, std::vector<int> (*)(int))", False),
        ("<L, pybind11::dict, pybind11::scope>(L&&, pybind11::dict (*)(int))", False),
        ("<L, unsigned long, int, pybind11::scope>(L&&, unsigned long (*)(int))", False),
    ],
)
def test_constructor_is_not_timed(dispatcher: str, expected: bool) -> None:
    assert sets_up(f"pybind11::cpp_function::initialize{dispatcher}") == expected


@pytest.mark.parametrize(
    ("pattern", "symbol", "matches"),
    [
        (
            LIBRARY_VARIABLE,
            "_ZN49_INTERNAL_80fcafe3_21_all_links_in_order_cu_kPlan4cuda3std3__45__cpo3endE",
            True,
        ),
        (LIBRARY_VARIABLE, "_ZN4cuda3std3__48in_placeE", True),
        (LIBRARY_VARIABLE, "_ZN3cub6detail5tableE", True),
        (LIBRARY_VARIABLE, "_ZN37_INTERNAL_80fcafe3_10_gather_cu_kPlan6countsE", False),
        (LIBRARY_VARIABLE, "_ZN6gather4cuda5tableE", False),
        (LIBRARY_VARIABLE, "counts", False),
        (CONSTRUCTOR, "_ZN12_GLOBAL__N_15BoundC2Ei", True),
        (CONSTRUCTOR, "_ZN5BoundC1Ev", True),
        (CONSTRUCTOR, "_ZN12_GLOBAL__N_15Bound6launchEl", False),
        (CONSTRUCTOR, "_Z7prepareRK6GatherS1_", False),
    ],
)
def test_variables_of_libraries_and_constructors_are_known(
    pattern: re.Pattern[str], symbol: str, matches: bool
) -> None:
    assert (pattern.match(readable(symbol)) is not None) == matches


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [(b"\x48\x8d\x3d", True), (b"\x4c\x8d\x05", True), (b"\x90\x90\xe8", False),
     (b"\x90\x90\xe9", False), (b"\x90\x0f\x84", False)],
    ids=["lea rdi", "lea r8", "call", "jmp", "je"],
)  # fmt: skip
def test_a_function_that_is_only_called_is_not_given_to_python(
    instruction: bytes, expected: bool
) -> None:
    """Relocations of type 2 are relative to the instruction: PC32."""
    section = Section(".text", 6, 7, 1, 0, instruction + bytes(4), ())
    assert takes_address(section, Relocation(3, 2, 0, -4)) == expected
