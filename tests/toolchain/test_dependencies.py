"""Compilation after a change: every file that includes the changed one, and no other."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from analysis.study import Study, discover
from analysis.study.source import bindings_files
from tests.compiled import bindings_made_of, module_made_of, toolchain
from tests.repository import copy_studies


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The studies, in a folder where they may be changed."""
    root = tmp_path_factory.mktemp("studies")
    copy_studies(root)
    return root


@pytest.fixture(scope="module")
def studies(copy: Path) -> dict[str, Study]:
    return {name: study for name, study in discover(copy).items() if study.bindings}


def read_by_compiler(source: Path, root: Path) -> set[Path]:
    """The files below `root` that the compiler's preprocessor reads for `source`, with any of the
    macros that decide what is included."""
    return set().union(*(_read(source, root, macros) for macros in ((), ("-DOVER_CUDA",))))


@cache
def _read(source: Path, root: Path, macros: tuple[str, ...]) -> frozenset[Path]:
    # Headers of libraries count as generated: they need not be installed.
    nowhere = root / "empty"
    nowhere.mkdir(exist_ok=True)
    flags = ["-MM", "-MG", "-nostdinc", f"-I{nowhere}", "-x", "c++"]
    command = [toolchain().cxx, *flags, *macros, str(source)]
    rule = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    named = (Path(word).resolve() for word in rule.replace("\\\n", " ").split()[1:])
    return frozenset(path for path in named if path.is_relative_to(root) and path.exists())


def objects(studies: Iterable[Study]) -> dict[str, list[Path | str]]:
    """Inputs of the compilation of each object, by name."""
    return {f"{study.name}/bindings": bindings_made_of(study) for study in studies} | {
        f"{study.name}/{variant.name}": module_made_of(study, variant)
        for study in studies
        for variant in study.variants
        if variant.is_compiled
    }


def test_bindings_depend_on_all_files_that_the_compiler_reads(
    copy: Path, studies: dict[str, Study]
) -> None:
    for study in studies.values():
        assert study.bindings is not None
        read = read_by_compiler(study.bindings, copy)
        assert set(bindings_files(study)) == read, study.name
    # The case in point: bindings of one study in the folder of another.
    others = {path.parent.name for path in bindings_files(studies["fragmentation"])}
    assert "lib" in others


def test_a_changed_header_changes_the_objects_that_include_it_and_no_others(
    copy: Path, studies: dict[str, Study]
) -> None:
    made_of = objects(studies.values())
    read = {}
    for name in made_of:
        study = studies[name.split("/")[0]]
        assert study.bindings is not None
        sources = [study.bindings]
        if not name.endswith("/bindings"):
            sources.append(study.variant(name.split("/")[1]).path)
        read[name] = set().union(*(read_by_compiler(source, copy) for source in sources))
    headers = sorted(copy.rglob("*.h"))
    assert len(headers) > 50
    for header in headers:
        rebuilt = {name for name, parts in made_of.items() if header in parts}
        assert rebuilt == {name for name, files in read.items() if header in files}, header.name
