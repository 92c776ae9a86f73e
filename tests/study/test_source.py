"""Edits that make a result stale: those of tokens, flags and constants, and no others."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from analysis import ROOT
from analysis.study import Study, load_study
from analysis.study.source import (
    fingerprint,
    normalise_cpp,
    normalise_python,
    source_files,
)
from analysis.toolchain.modules import load_python
from tests.editing import replace_in
from tests.repository import STUDIES, TOPS, copy_studies


def load(folder: Path) -> Study:
    return load_study(folder / "study.yaml")


def prints(folder: Path) -> dict[str, str]:
    study = load(folder)
    return {variant.name: fingerprint(study, variant) for variant in study.variants}


def changed(folder: Path, edit: Callable[[], object]) -> set[str]:
    """The variants whose fingerprint `edit` changes."""
    before = prints(folder)
    edit()
    after = prints(folder)
    return {name for name in before if before[name] != after[name]}


def copied(name: str, repository: Path) -> Path:
    """The folder of the study in a repository that has it and what studies share."""
    copy_studies(repository, [name])
    return repository / STUDIES[name].folder.relative_to(ROOT)


@pytest.fixture
def gather(tmp_path: Path) -> Path:
    return copied("h2d_gather", tmp_path)


def test_a_variant_that_is_no_python_changes_its_own_hash_alone(gather: Path) -> None:
    file = gather / "torch_index_select.py"
    for text in ("def f(:\n", "\0", "  x = 1\n"):
        broken = changed(gather, partial(file.write_text, text))
        assert "torch_index_select" in broken and "v0_byte_copy" not in broken


def test_a_fingerprint_depends_on_no_path_and_no_file_time(gather: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where"
    shutil.copytree(gather.parent, elsewhere / "kernels", copy_function=shutil.copy)
    moved = elsewhere / "kernels" / gather.name
    assert prints(moved) == prints(gather) == prints(STUDIES["h2d_gather"].folder)


def test_fingerprints_distinguish_programs(gather: Path) -> None:
    settings = {
        (v.path, v.flags, *v.constants.items(), *v.options.items(), v.role, v.host_work)
        for v in load(gather).variants
    }
    assert len(set(prints(gather).values())) == len(settings)


IGNORED = {
    "v3_loads_first.cu": [
        ("int4 held", "// held\n  int4  /* kept */\n      held"),
        ("void launch", "\n\n\n\tvoid launch"),
    ],
    "v2_warp_per_token.cu": [("#pragma unroll", "#pragma  unroll  // fully")],
    "bindings.cpp": [(") {\n", ")\n{\n")],
    "workload.py": [
        ('"""The gather\'s pools', '"""Pools'),
        ("MAX_SMS = 1024\n", "# of any GPU\nMAX_SMS  =  1024  # a number\n\n\n"),
    ],
    "study.yaml": [
        ("title: Gather scattered", "title: Fetch scattered"),
        ("bs: [1, 16, 64, 128]", "bs: [1, 2, 16, 64, 128]"),
        ("budget_s: ", "budget_s: 9"),
    ],
}
COUNTED = {
    "v3_loads_first.cu": [("void launch", "void start")],
    "v2_warp_per_token.cu": [("#pragma  unroll", "#pragma  unroll 2")],
    "batch_memcpy.cpp": [("sizes(rows, kRowBytes)", "sizes(rows, kSlotBytes)")],
    "torch_index_select.py": [("            rows = self", "            cols = self")],
    "operator.h": [("kRowBytes / 16", "kRowBytes / 8")],
    "../common/launch.h": [("kBlock = 256", "kBlock = 128")],
    "bindings.cpp": [("pinned host memory", "pinned  host memory")],
}
"""Edits by file: a text and its replacement."""


def test_an_edit_changes_the_fingerprints_of_all_variants_that_compile_the_file(
    gather: Path,
) -> None:
    variants = load(gather).variants
    compiled = {variant.name for variant in variants if variant.is_compiled}
    for edits in (IGNORED, COUNTED):
        for file, pairs in edits.items():
            of_file = {v.name for v in variants if v.path.name == file} or compiled
            for old, new in pairs:
                touched = changed(gather, partial(replace_in, gather / file, old, new))
                assert touched == (of_file if edits is COUNTED else set()), (file, new)


def test_the_workload_and_a_constant_belong_to_every_variant_that_has_it(gather: Path) -> None:
    edit = partial(replace_in, gather / "workload.py", "MAX_SMS = 1024", "MAX_SMS = 512")
    assert changed(gather, edit) == set(prints(gather))
    shared = {v.name for v in load(gather).variants if v.constants["token_bytes"] == 656}
    edit = partial(replace_in, gather / "study.yaml", "token_bytes: 656", "token_bytes: 688")
    assert changed(gather, edit) == shared


def test_settings_of_a_variant_affect_no_other(gather: Path) -> None:
    before = "after: v2_warp"
    for setting in (
        "flags: [-DA, -UA]",
        "flags: [-UA, -DA]",
        "constants: {token_bytes: 672}",
        "options: {lanes: wide}",
    ):
        after = f"{setting}\n    after: v2_warp"
        edit = partial(replace_in, gather / "study.yaml", before, after)
        assert changed(gather, edit) == {"v3_loads_first"}
        before = after


def test_headers_of_headers_are_sources_and_the_systems_are_not(gather: Path) -> None:
    (gather / "inner").mkdir()
    (gather / "inner" / "lanes.h").write_text("constexpr int kLanes = 32;\n")
    headers = '#include <cstdint>\n  #  include "inner/lanes.h"\n#include "not_here.h"'
    replace_in(gather / "operator.h", "#include <cstdint>", headers)
    edit = partial(replace_in, gather / "inner" / "lanes.h", "32", "64")
    assert changed(gather, edit) == {v.name for v in load(gather).variants if v.is_compiled}


def test_cpp_keeps_tokens_and_literals() -> None:
    normal = {
        'auto a = "x // y";  // z': 'auto a="x // y";',
        'auto a = "/* x */" /* y */ "b  c";': 'auto a="/* x */""b  c";',
        r'auto a = "\" // x"; // y': r'auto a="\" // x";',
        "char a = '\"'; // it's\nchar b = '\\'';": "char a='\"';char b='\\'';",
        'auto a = R"(x // y  /* z\n "q" */)"; // w': 'auto a=R"(x // y  /* z\n "q" */)";',
        'auto a = R"ab(x)" // )ab"; // w': 'auto a=R"ab(x)" // )ab";',
        "long a = 1'000'000; // it's\nlong b = 2;": "long a=1'000'000;long b=2;",
        "int a = 1'000; auto s = \"b  '  c\";": "int a=1'000;auto s=\"b  '  c\";",
        "a /* x\n// y */ b // c \\\n still c\nd": "a b d",
        '#include "a.h"  // why\n#define A 1  /* x */\n': '\n#include "a.h"\n\n#define A 1\n',
        "": "",
    }
    assert {text: normalise_cpp(text) for text in normal} == normal


def test_python_that_differs_in_comments_and_blanks_is_the_same() -> None:
    for one, other in (
        ("a = f(1, 2)\n", "a=f( 1,2 )   # call\n"),
        ("def f():\n    return 1\n", 'def f():\n    """Say one."""\n\n    # one\n    return 1\n'),
        ('"""Module."""\n\na = 1\n', "a = 1\n"),
        ("from analysis.b import c, d\n", "from analysis.a import (\n    c,\n    d,\n)\n"),
        (
            "from analysis.b import c\nx = 1\n\ndef f():\n    from analysis.e import d\n    d()\n",
            "from analysis.a import d\nfrom analysis.b import c\nx = 1\n\ndef f():\n    d()\n",
        ),
    ):
        assert normalise_python(one) == normalise_python(other)
    for one, other in (
        ("if a:\n    b()\n    c()\n", "if a:\n    b()\nc()\n"),
        ('a = """x\n# y\n"""\n', 'a = """x\n# z\n"""\n'),
        ("from analysis.a import b\n", "from analysis.a import c\n"),
        ("from analysis.a import b, c\n", "from analysis.a import c as b\n"),
        ("from other.a import b\n", "from other.c import b\n"),
    ):
        assert normalise_python(one) != normalise_python(other)


IMPORTS = [
    "from .used import THING",
    "from kernels.method.used import THING as OTHER",
    "import kernels.method.used",
    "def late():\n    if True:\n        from .used import THING",
    "from .package.inner import THING",
]


@pytest.mark.parametrize("text", IMPORTS)
def test_a_file_belongs_to_all_that_import_it(tmp_path: Path, text: str) -> None:
    folder = copied("method", tmp_path)
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("from ..used import THING\n")
    (folder / "package" / "inner.py").write_text("from .. import used\n")
    (folder / "used.py").write_text("THING = 1\n")
    assert changed(folder, partial(replace_in, folder / "used.py", "1", "2")) == set()
    workload = folder / "workload.py"
    workload.write_text(f"{workload.read_text()}\n{text}\n")
    edit = partial(replace_in, folder / "used.py", "2", "3")
    assert changed(folder, edit) == set(prints(folder))


@pytest.mark.parametrize(
    ("study", "variant"),
    [
        ("hot_set", "both_on_request"),
        ("fragmentation", "p4_final"),
        ("training", "torch_caching"),
    ],
)
def test_each_file_of_the_measured_code_counts_and_no_other(
    tmp_path: Path, study: str, variant: str
) -> None:
    folder = copied(study, tmp_path)
    description = load(folder)
    print_of = partial(fingerprint, description, description.variant(variant))
    before, files = print_of(), source_files(description, description.variant(variant))
    for path in files:
        text, unchanged = path.read_text(), path.stat()
        path.write_text(f"{text}\n{'added = 1' if path.suffix == '.py' else 'int added;'}\n")
        assert print_of() != before, path
        path.write_text(text)
        os.utime(path, ns=(unchanged.st_atime_ns, unchanged.st_mtime_ns))
        assert print_of() == before
    code = {path for path in tmp_path.rglob("*") if path.suffix in (".py", ".h", ".cpp", ".cu")}
    assert len(code - set(files)) > 5
    for path in code - set(files):
        path.write_text("")
    assert print_of() == before


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
def test_every_module_that_a_workload_loads_belongs_to_its_variants(study: Study) -> None:
    def loaded() -> dict[str, ModuleType]:
        files = {name: getattr(one, "__file__", None) for name, one in sys.modules.items()}
        paths = {name: Path(file).resolve() for name, file in files.items() if file}
        return {n: sys.modules[n] for n, path in paths.items() if set(path.parents) & set(TOPS)}

    before = loaded()
    try:
        for variant in {variant.workload: variant for variant in study.variants}.values():
            for name in loaded():
                del sys.modules[name]
            if all("torch" in one.needs for one in study.variants):
                pytest.importorskip("torch", reason="nothing of the study runs without it")
            load_python(study, variant.workload)
            files = {Path(str(one.__file__)).resolve() for one in loaded().values()}
            assert files <= set(source_files(study, variant))
    finally:  # no module of this test stays, as it would use copies of those that others have
        for name in loaded():
            del sys.modules[name]
        sys.modules.update(before)
