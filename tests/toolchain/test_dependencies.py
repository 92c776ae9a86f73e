"""Compilation after a change: every file that includes the changed one, and no other."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from analysis.study import Study, discover
from analysis.study.source import bindings_files
from tests.compiled import bindings_made_of, module_made_of, toolchain
from tests.repository import copy_studies


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> list[Study]:
    """The compiled studies, in a folder where they may be changed."""
    root = tmp_path_factory.mktemp("studies")
    copy_studies(root)
    (root / "empty").mkdir()
    return [study for study in discover(root).values() if study.bindings]


@cache
def read_by_compiler(source: Path, root: Path) -> set[Path]:
    """The files below `root` that the compiler's preprocessor reads for `source`, with any of the
    macros that decide what is included. Headers of libraries count as generated: they need not be
    installed."""
    read = set()
    for macros in ((), ("-DOVER_CUDA",)):
        flags = ["-MM", "-MG", "-nostdinc", f"-I{root / 'empty'}", "-x", "c++", *macros]
        command = [toolchain().cxx, *flags, str(source)]
        rule = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        read |= {Path(word).resolve() for word in rule.replace("\\\n", " ").split()[1:]}
    return {path for path in read if path.is_relative_to(root) and path.exists()}


def test_a_changed_header_changes_the_objects_that_include_it_and_no_others(
    studies: list[Study],
) -> None:
    made_of: dict[str, set[Path | str]] = {}
    read: dict[str, set[Path]] = {}
    for study in studies:
        assert study.bindings is not None
        of_bindings = read_by_compiler(study.bindings, study.root)
        assert set(bindings_files(study)) == of_bindings, study.name
        read[study.name], made_of[study.name] = of_bindings, {*bindings_made_of(study)}
        for variant in (variant for variant in study.variants if variant.is_compiled):
            name = f"{study.name}/{variant.name}"
            read[name] = of_bindings | read_by_compiler(variant.path, study.root)
            made_of[name] = {*module_made_of(study, variant)}
    headers = sorted(studies[0].root.rglob("*.h"))
    assert len(headers) > 50
    for header in headers:
        rebuilt = {name for name, parts in made_of.items() if header in parts}
        assert rebuilt == {name for name, files in read.items() if header in files}, header.name
