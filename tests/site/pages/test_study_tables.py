"""Tables that studies compute for their pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from markupsafe import Markup

from analysis.base.errors import FieldError
from analysis.site.charts.page_tables import (
    SOURCE,
    PageTable,
    read_page_table,
    write_page_tables,
)
from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import table
from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

WITH_TABLES = [name for name, study in STUDIES.items() if (study.folder / f"{SOURCE}.py").exists()]


def nothing_of(study: str, folder: Path) -> StudyFacts:
    return StudyFacts(load_inputs(folder, folder, {study: STUDIES[study]}), STUDIES[study])


@pytest.mark.parametrize("study", WITH_TABLES)
def test_a_page_shows_every_table_and_a_sentence_without_rows(study: str, tmp_path: Path) -> None:
    page = (Path("docs") / "studies" / f"{study}.md").read_text()
    others = "".join(path.read_text() for path in Path("docs").glob("*.md"))
    write_page_tables(nothing_of(study, tmp_path), tmp_path)
    for name in load_python(STUDIES[study], SOURCE).TABLES:
        elsewhere = f"study_table('{name}', study='{study}')"
        assert f"study_table('{name}')" in page or elsewhere in others
        made = read_page_table(tmp_path, name)
        assert not made.rows
        assert made.empty_text.endswith(".")


def test_a_table_has_its_columns_and_escapes_what_is_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = WITH_TABLES[0]
    bold = Markup("<i>{}</i>").format("a&b")
    made = PageTable(["variant", "time"], [["<b>", "1 µs"], [bold, 3]], "Nothing.", ["time"])
    monkeypatch.setattr(load_python(STUDIES[study], SOURCE), "TABLES", {"made": lambda _: made})
    write_page_tables(nothing_of(study, tmp_path), tmp_path)
    read = read_page_table(tmp_path, "made")
    assert (read.columns, read.empty_text, read.numeric) == (made.columns, "Nothing.", ["time"])
    shown = table(read.columns, read.rows, numeric=read.numeric)
    assert shown == table(made.columns, made.rows, numeric=made.numeric)
    assert "&lt;b&gt;" in shown
    assert "<i>a&amp;b</i>" in shown


def test_an_unknown_table_is_an_error(tmp_path: Path) -> None:
    write_page_tables(nothing_of(WITH_TABLES[0], tmp_path), tmp_path)
    with pytest.raises(FieldError, match=r"^table: expected one of"):
        read_page_table(tmp_path, "other")
