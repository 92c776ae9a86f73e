"""Edits that make a result stale: those of tokens, flags and constants, and no others. What studies
import."""

import re
import sys
from pathlib import Path
from typing import Final

import pytest

from analysis import ROOT
from analysis.study import Study, load_study
from analysis.study.source import fingerprint, normalise_cpp, normalise_python, source_files
from analysis.toolchain.modules import load_python
from tests.editing import replace_in
from tests.repository import STUDIES, TOPS, copy_studies

GATHER: Final = STUDIES["h2d_gather"]
ALL: Final = {variant.name for variant in GATHER.variants}
COMPILED: Final = {variant.name for variant in GATHER.variants if variant.is_compiled}
SHARED: Final = {v.name for v in GATHER.variants if v.constants["token_bytes"] == 656}
V3, AFTER = {"v3_loads_first"}, "after: v2_warp"


def prints(folder: Path) -> dict[str, str]:
    study = load_study(folder / "study.yaml")
    return {variant.name: fingerprint(study, variant) for variant in study.variants}


def copied(name: str, repository: Path) -> Path:
    """The folder of the study in a repository that has it and what studies share."""
    copy_studies(repository, [name])
    return repository / STUDIES[name].folder.relative_to(ROOT)


def of(file: str) -> set[str]:
    return {variant.name for variant in GATHER.variants if variant.path.name == file}


EDITS: Final[tuple[tuple[str, str, str, set[str]], ...]] = (
    ("v3_loads_first.cu", "int4 held", "// held\n  int4  /* kept */\n      held", set()),
    ("v2_warp_per_token.cu", "#pragma unroll", "#pragma  unroll  // fully", set()),
    ("bindings.cpp", ") {\n", ")\n{\n", set()),
    ("workload.py", '"""The gather\'s pools', '"""Pools', set()),
    ("workload.py", "MAX_SMS = 1024\n", "# of any\nMAX_SMS  =  1024  # GPU\n\n\n", set()),
    ("study.yaml", "title: Gather scattered", "title: Fetch scattered", set()),
    ("study.yaml", "bs: [1, 16, 64, 128]", "bs: [1, 2, 16, 64, 128]", set()),
    ("v3_loads_first.cu", "void launch", "void start", of("v3_loads_first.cu")),
    ("v2_warp_per_token.cu", "#pragma  unroll", "#pragma  unroll 2", of("v2_warp_per_token.cu")),
    ("torch_index_select.py", "  rows = self", "  cols = self", of("torch_index_select.py")),
    ("torch_index_select.py", "cols = self", "cols = (self", of("torch_index_select.py")),
    ("operator.h", "kRowBytes / 16", "kRowBytes / 8", COMPILED),
    ("operator.h", "#include <cstdint>", '#  include "inner.h"\n#include "none.h"', COMPILED),
    ("inner.h", "32", "64", COMPILED),
    ("../common/launch.h", "kBlock = 256", "kBlock = 128", COMPILED),
    ("bindings.cpp", "pinned host memory", "pinned  host memory", COMPILED),
    ("workload.py", "MAX_SMS  =  1024", "MAX_SMS = 512", ALL),
    ("study.yaml", "token_bytes: 656", "token_bytes: 688", SHARED),
    ("study.yaml", AFTER, f"flags: [-DA, -UA]\n    {AFTER}", V3),
    ("study.yaml", "flags: [-DA, -UA]", "flags: [-UA, -DA]", V3),
    ("study.yaml", AFTER, f"constants: {{token_bytes: 672}}\n    {AFTER}", V3),
    ("study.yaml", AFTER, f"options: {{lanes: wide}}\n    {AFTER}", V3),
)
"""File, text, its replacement, and the variants whose results it makes stale."""


def test_an_edit_makes_only_those_stale_that_it_can_affect(tmp_path: Path) -> None:
    folder = copied("h2d_gather", tmp_path / "else where")
    before = prints(folder)
    assert before == prints(GATHER.folder), "it depends on no path"
    programs = {(*map(str, v.program), v.role, v.host_work) for v in GATHER.variants}
    assert len({*before.values()}) == len(programs)
    (folder / "inner.h").write_text("constexpr int kLanes = 32;\n")
    for file, old, new, expected in EDITS:
        replace_in(folder / file, old, new)
        after = prints(folder)
        assert {name for name in ALL if before[name] != after[name]} == expected, (file, new)
        before = after


def test_cpp_keeps_tokens_and_literals() -> None:
    normal = {
        'auto a = "x // y";  // z': 'auto a="x // y";',
        'auto a = "/* x */" /* y */ "b  c";': 'auto a="/* x */""b  c";',
        r'auto a = "\" // x"; // y': r'auto a="\" // x";',
        "char a = '\"'; // it's\nchar b = '\\'';": "char a='\"';char b='\\'';",
        'auto a = R"ab(x)" // )ab"; // w': 'auto a=R"ab(x)" // )ab";',
        "long a = 1'000'000; // it's\nlong b = 2;": "long a=1'000'000;long b=2;",
        "a /* x\n// y */ b // c \\\n still c\nd": "a b d",
        '#include "a.h"  // why\n#define A 1  /* x */\n': '\n#include "a.h"\n\n#define A 1\n',
    }
    assert {text: normalise_cpp(text) for text in normal} == normal


def test_python_keeps_its_syntax_tree_and_the_names_that_it_imports_from_the_engine() -> None:
    late = "from analysis.b import c\nx = 1\n\ndef f():\n    from analysis.e import d\n    d()\n"
    early = "from analysis.a import d\nfrom analysis.b import c\nx = 1\n\ndef f():\n    d()\n"
    for is_same, one, other in (
        (True, "a = f(1, 2)\n", "a=f( 1,2 )   # call\n"),
        (True, "def f():\n    return 1\n", 'def f():\n    """One."""\n\n    return 1\n'),
        (True, late, early),
        (False, "if a:\n    b()\n    c()\n", "if a:\n    b()\nc()\n"),
        (False, 'a = """x\n# y\n"""\n', 'a = """x\n# z\n"""\n'),
        (False, "from analysis.a import b, c\n", "from analysis.a import c as b\n"),
        (False, "from other.a import b\n", "from other.c import b\n"),
    ):
        assert (normalise_python(one) == normalise_python(other)) is is_same, other


def test_a_file_belongs_to_all_that_import_it(tmp_path: Path) -> None:
    folder = copied("method", tmp_path)
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("from ..used import THING\n")
    (folder / "package" / "inner.py").write_text("from .. import used\n")
    workload = (folder / "workload.py").read_text()
    for text in (
        "from kernels.method.used import THING as OTHER",
        "import kernels.method.used",
        "def late():\n    if True:\n        from .used import THING",
        "from .package.inner import THING",
    ):
        (folder / "workload.py").write_text(f"{workload}\n{text}\n")
        (folder / "used.py").write_text("THING = 1\n")
        before = prints(folder)
        (folder / "used.py").write_text("THING = 2\n")
        assert all(before[name] != after for name, after in prints(folder).items()), text


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
def test_all_that_a_workload_loads_is_hashed(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    tops = tuple(f"{top}/" for top in TOPS)

    def loaded() -> dict[str, Path]:
        files = {name: f"{vars(one).get('__file__')}" for name, one in sys.modules.items()}
        return {name: Path(file) for name, file in files.items() if file.startswith(tops)}

    if all("torch" in one.needs for one in study.variants):
        pytest.importorskip("torch", reason="nothing of the study runs without it")
    with monkeypatch.context() as patch:  # no module of this test stays beside those of others
        for variant in {variant.workload: variant for variant in study.variants}.values():
            for name in loaded():
                patch.delitem(sys.modules, name)
            load_python(study, variant.workload)
            assert {*loaded().values()} <= set(source_files(study, variant))
        for name in loaded():
            del sys.modules[name]


PAST_THE_DOOR = re.compile(r"^\s*(?:from|import) (?:analysis(?!\.api\b)|\.\.).*", re.MULTILINE)
HEADER = re.compile(r'^\s*#\s*include "(.*\.h)"', re.MULTILINE)
OTHERS = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(top.name for top in TOPS)})\.(\w+)", re.M)
BUILT_ON = {"decode_step": {"hot_set"}}


def test_studies_import_from_the_door_only() -> None:
    """And none from the folder of another, but for layers made of the operators of one layer."""
    code = (".py", ".h", ".cpp", ".cu")
    files = [path for top in TOPS for path in top.rglob("*") if path.suffix in code]
    assert len(files) > 200
    for file in files:
        text = file.read_text()
        paths = [(file.parent / name).resolve() for name in HEADER.findall(text)]
        used = {path.relative_to(ROOT).parts[1] for path in paths if path.is_relative_to(ROOT)}
        if file.suffix == ".py":
            assert PAST_THE_DOOR.findall(text) == [], file
            used = {*OTHERS.findall(text)}
        others = used & STUDIES.keys() - {file.relative_to(ROOT).parts[1]}
        assert others <= BUILT_ON.get(file.parent.name, set()), file
