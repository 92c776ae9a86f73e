"""The order of pages and studies: as listed, what is not listed last among the journeys."""

from __future__ import annotations

import re
from pathlib import Path

from analysis import ROOT
from analysis.site.pages.navigation import (
    JOURNEYS,
    Entry,
    navigation,
    page_names,
    sidebar,
    study_groups,
)
from tests.repository import STUDIES


def test_pages_keep_their_order_and_others_come_last_among_the_journeys(tmp_path: Path) -> None:
    (tmp_path / "studies").mkdir()
    (tmp_path / "mkdocs.yml").write_text(
        "nav: [index.md, gone.md, {Journeys: [studies/b.md]}, {Empty: [studies/no.md]},"
        " {Rest: [studies/c.md, data.md]}]\n"
    )
    for name in ("index", "data", "studies/a", "studies/b", "studies/c"):
        (tmp_path / f"{name}.md").write_text("")
    entries = navigation(tmp_path)
    assert entries == [
        "index.md",
        {JOURNEYS: ["studies/b.md", "studies/a.md"]},
        {"Rest": ["studies/c.md", "data.md"]},
    ]
    groups = study_groups(entries, ["a", "b", "c", "without_a_page"])
    assert groups == {JOURNEYS: ["b", "a", "without_a_page"], "Rest": ["c"]}


def test_pages_that_are_part_of_others_are_in_no_sidebar(tmp_path: Path) -> None:
    entries: list[Entry] = [
        "index.md",
        {JOURNEYS: ["studies/a.md", "studies/b.md"]},
        {"Rest": ["data.md"]},
    ]
    (tmp_path / "mkdocs.yml").write_text("nav: []\nnot_in_nav: |\n  /studies/b.md\n  /data.md\n")
    assert sidebar(entries, tmp_path) == ["index.md", {JOURNEYS: ["studies/a.md"]}]
    (tmp_path / "mkdocs.yml").write_text("nav: []\n")
    assert sidebar(entries, tmp_path) == entries


def test_every_page_that_the_sidebar_leaves_out_has_a_link() -> None:
    entries = navigation(ROOT / "docs")
    shown = sidebar(entries, ROOT / "docs")
    assert shown != entries
    texts = "".join((ROOT / "docs" / page).read_text() for page in page_names(entries))
    for page in {*page_names(entries)} - {*page_names(shown)}:
        assert re.search(rf"[(/]{re.escape(Path(page).name)}[)#]", texts), page


def test_every_study_of_the_repository_has_its_place() -> None:
    groups = study_groups(navigation(ROOT / "docs"), STUDIES)
    assert sorted(name for names in groups.values() for name in names) == sorted(STUDIES)
    write_ups = {name for name, study in STUDIES.items() if study.write_up}
    assert {*write_ups, "pool_gather"} - {"storage_fill"} <= set(groups[JOURNEYS])
