"""Every key and column of committed results, spoiled in every way: one line each, and all pages."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from html import unescape
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.results.store.collect import Collected, collect
from analysis.results.store.folders import DESCRIPTION, KINDS
from analysis.results.tables.of_study import study_tables
from analysis.results.tables.together import put_together
from analysis.site.facts.comparison import Comparison
from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages import hardware, machines
from analysis.site.pages.site import build_site
from analysis.study import Study
from tests.repository import STUDIES
from tests.results.store.spoiling import COMMITTED, Spoiled, places, spoiled
from tests.roots import text_of, write_tables

OTHER = "other-box"
SHARES = 24
"""Tests that the mutations are dealt out to."""


def copy_variant(mutation: Spoiled, root: Path) -> str:
    """Two machines with the variant whose file is spoiled; returns its study."""
    shutil.rmtree(root, ignore_errors=True)
    path = Path(mutation.file)
    if mutation.is_description:
        path = min((COMMITTED / mutation.machine).glob("*/*.json")).relative_to(COMMITTED)
    study, variant = path.parent.name, path.name.partition(".")[0]
    for machine in (mutation.machine, OTHER):
        (root / machine / study).mkdir(parents=True)
        source = COMMITTED / mutation.machine
        shutil.copy(source / DESCRIPTION, root / machine)
        for kind in KINDS:
            if (file := source / study / f"{variant}{kind}").exists():
                shutil.copy(file, root / machine / study)
    return study


def is_refused(mutation: Spoiled, root: Path) -> bool:
    """Whether the spoiled file is refused; checks that it is refused alone, in one line."""
    study = copy_variant(mutation, root)
    known = {study: STUDIES[study]} if study in STUDIES else {}
    before = of_machine(collect(root, known, {study}), OTHER)
    mutation.apply(root)
    found = collect(root, known, {study})
    assert of_machine(found, OTHER).equals(before)
    if not found.refused:
        assert_shown(root, study, known)
        return False
    [(folder, line)] = found.refused.items()
    assert folder == mutation.folder
    assert line.startswith((f"{folder}/", f"{folder}:")) and "Error: " not in line
    assert line.isprintable() and len(line) < 600
    return True


def of_machine(found: Collected, machine: str):  # type: ignore[no-untyped-def]
    return found.samples[found.samples["machine"] == machine].reset_index(drop=True)


def assert_shown(root: Path, study: str, known: Mapping[str, Study]) -> None:
    """Make the tables, and what pages show of machines and runs."""
    tables = root.with_name("tables")
    shutil.rmtree(tables, ignore_errors=True)
    put_together({study: study_tables(root, study, known, {})}, {}, root, tables)
    inputs = load_inputs(tables, root, known)
    of_study = {name: StudyFacts(inputs, one) for name, one in known.items()}
    comparison = Comparison(inputs, of_study)
    for make in (machines.freshness, machines.machine_table, machines.provenance_table):
        assert inputs.called(OTHER) in str(make(inputs))
    assert hardware.differences(inputs) and hardware.pairs(comparison)
    assert hardware.hosts(comparison)
    hardware.gaps(comparison)
    hardware.figures_table(comparison)


def check(mutations: list[Spoiled], tmp: Path) -> tuple[list[Spoiled], list[Spoiled]]:
    """The refused and the accepted mutations."""
    found: tuple[list[Spoiled], list[Spoiled]] = [], []
    for mutation in mutations:
        try:
            found[0 if is_refused(mutation, tmp / "results") else 1].append(mutation)
        except Exception as error:
            raise AssertionError(f"{mutation}: {error!r}") from error
    return found


def test_every_kind_of_file_is_spoiled() -> None:
    assert {kind for kind, _ in places()} == {DESCRIPTION, *KINDS}
    assert len(spoiled()) > 4000


def test_a_few_spoiled_files_are_one_line_or_shown(tmp_path: Path) -> None:
    """Of at least twelve, and as many more as it takes until one is accepted."""
    mutations = spoiled(200)
    refused, accepted = check(mutations[:12], tmp_path)
    for mutation in mutations[12:]:
        if accepted:
            break
        more_refused, accepted = check([mutation], tmp_path)
        refused += more_refused
    assert len(refused) > len(accepted) > 0


@pytest.mark.long
@pytest.mark.parametrize("share", range(SHARES))
def test_every_spoiled_file_is_one_line_or_shown(tmp_path: Path, share: int) -> None:
    refused, accepted = check(spoiled()[share::SHARES], tmp_path)
    print(f"{len(refused)} refused, {len(accepted)} accepted")
    assert len(refused) > len(accepted) > 0


@pytest.mark.long
def test_a_site_of_many_spoiled_files_has_every_page(tmp_path: Path) -> None:
    """Three studies of a machine are refused; elsewhere, one file of a variant is changed."""
    refused, accepted = check(spoiled(100, seed=2), tmp_path)
    of_studies = {one.folder: one for one in refused if not one.is_description}
    left_out = dict(sorted(of_studies.items())[:3])
    changed = {one.subject: one for one in accepted if one.folder not in left_out}
    results, tables = tmp_path / "all", tmp_path / "tables"
    shutil.copytree(COMMITTED, results)
    for mutation in (*left_out.values(), *changed.values()):
        mutation.apply(results)
    write_tables(results, STUDIES, tables)
    assert set(json.loads((tables / "refused.json").read_text())) == set(left_out)
    build_site(tables, results, tmp_path / "site", ROOT)
    pages = {path.parent.name for path in (tmp_path / "site" / "studies").glob("*/index.html")}
    assert set(STUDIES) <= pages
    home = unescape(text_of(tmp_path / "site" / "index.html"))
    assert all(f"{folder} is left out: " in home for folder in left_out)
