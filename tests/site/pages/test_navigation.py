"""The order of pages and studies: as listed, what is not listed last among the journeys."""

from pathlib import Path

from analysis import ROOT
from analysis.site.pages.navigation import JOURNEYS, OUTSIDE, navigation, sidebar, study_groups
from tests.repository import STUDIES

MAX_ENTRIES = 22


def test_pages_keep_their_order_and_others_come_last_among_the_journeys(tmp_path: Path) -> None:
    (tmp_path / "studies").mkdir()
    (tmp_path / "mkdocs.yml").write_text(
        "nav: [index.md, gone.md, {Journeys: [studies/b.md]}, {Empty: [studies/no.md]},"
        " {Rest: [studies/c.md]}, {Outside the menu: [data.md]}]\n"
    )
    for name in ("index", "data", "studies/a", "studies/b", "studies/c"):
        (tmp_path / f"{name}.md").write_text("")
    listed = navigation(tmp_path)
    journeys = (JOURNEYS, ["studies/b.md", "studies/a.md"])
    rest = ("Rest", ["studies/c.md"])
    assert listed == [("", ["index.md"]), journeys, rest, ("Outside the menu", ["data.md"])]
    groups = study_groups(listed, ["a", "b", "c", "without_a_page"])
    assert groups == {JOURNEYS: ["b", "a", "without_a_page"], "Rest": ["c"]}
    assert sidebar(listed) == ["index.md", dict([journeys]), dict([rest])]


def test_the_menu_is_short_and_every_study_has_its_place() -> None:
    listed = navigation(ROOT / "docs")
    assert sum(len(pages) for name, pages in listed if name != OUTSIDE) <= MAX_ENTRIES
    groups = study_groups(listed, STUDIES)
    assert sorted(name for names in groups.values() for name in names) == sorted(STUDIES)
