"""Authors, licence and write-ups of the footer, and the citation."""

from __future__ import annotations

from pathlib import Path

from analysis import ROOT
from analysis.base.schema import read_yaml
from analysis.site.pages.citing import citation, footer, stage_licence
from tests.repository import STUDIES


def test_write_up_without_an_address_leads_to_its_study() -> None:
    found = {one["title"]: one["address"] for one in footer(STUDIES.values(), STUDIES)["write_ups"]}
    transfers, gather = (STUDIES[name].write_up for name in ("transfers", "h2d_gather"))
    assert transfers is not None and found[transfers.title] == transfers.address
    assert gather is not None and found[gather.title] == "studies/h2d_gather/"
    assert set(found.values()) > {"studies/unpack/"}
    without_pages = footer(STUDIES.values(), ())["write_ups"]
    assert {one["address"] for one in without_pages} >= {"."}


def test_citation_is_that_of_the_file() -> None:
    known = read_yaml(ROOT / "CITATION.cff")
    assert known["title"] in citation() and known["version"] in citation()
    assert footer(STUDIES.values(), ())["authors"] == known["authors"][0]["name"]


def test_the_site_has_licence_and_citation(tmp_path: Path) -> None:
    stage_licence(tmp_path)
    assert {one.name for one in tmp_path.iterdir()} == {"LICENSE.txt", "CITATION.cff"}
