"""Compilation after a change: every file that includes the changed one, and no other."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from analysis.study import discover
from analysis.study.source import bindings_files
from tests.compiled import bindings_made_of, module_made_of, toolchain
from tests.repository import copy_studies


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
    tmp_path: Path,
) -> None:
    copy_studies(tmp_path)
    (tmp_path / "empty").mkdir()
    headers = sorted(tmp_path.rglob("*.h"))
    assert len(headers) > 50
    for study in filter(lambda study: study.bindings, discover(tmp_path).values()):
        assert study.bindings is not None
        of_bindings = read_by_compiler(study.bindings, tmp_path)
        assert set(bindings_files(study)) == of_bindings, study.name
        assert {*headers} & {*bindings_made_of(study)} == {*headers} & of_bindings, study.name
        for variant in filter(lambda variant: variant.is_compiled, study.variants):
            read = of_bindings | read_by_compiler(variant.path, tmp_path)
            made_of = {*module_made_of(study, variant)}
            assert {*headers} & made_of == {*headers} & read, variant.name
