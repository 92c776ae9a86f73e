"""Authors, licence and write-ups of the footer, and the citation."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from analysis import ROOT
from analysis.base.reading import read_yaml
from analysis.site.pages.citing import (
    citation,
    clone_command,
    comparer_command,
    footer,
    stage_licence,
)
from analysis.site.pages.page import Page
from tests.repository import STUDIES


def test_write_up_without_an_address_has_no_link() -> None:
    found = {one["title"]: one["address"] for one in footer(STUDIES.values())["write_ups"]}
    transfers, gather = (STUDIES[name].write_up for name in ("transfers", "h2d_gather"))
    assert transfers is not None and found[transfers.title] == transfers.address
    assert gather is not None and found[gather.title] == ""
    assert not any(address.startswith("studies/") for address in found.values())


def page_of(address: str) -> Page:
    """A page of a site with this address of the repository."""
    conf = {"extra": {"repository": address}}
    return cast(Page, SimpleNamespace(env=SimpleNamespace(conf=conf)))


@pytest.mark.parametrize(
    ("address", "begins"),
    [
        (
            "",
            "Get the code: <code>git clone ADDRESS hotpath &amp;&amp; cd hotpath</code>. <code>ADD",
        ),
        (
            "https://example.org/a?b=1&c",
            "Get the code: <code>git clone https://example.org/a?b=1&amp;c hotpath",
        ),
    ],
)
def test_way_to_the_code_follows_from_the_address(address: str, begins: str) -> None:
    assert clone_command(page_of(address)).startswith(begins)


def test_the_comparison_runs_from_the_address_or_from_one_that_is_explained() -> None:
    assert "ADDRESS</code> is the address that you cloned from." in comparer_command(page_of(""))
    command = comparer_command(page_of("https://example.org/a"))
    assert '"git+https://example.org/a#subdirectory=env/compare"' in command
    assert "ADDRESS" not in command


def test_citation_is_that_of_the_file() -> None:
    known = read_yaml(ROOT / "CITATION.cff")
    assert known["title"] in citation() and known["version"] in citation()
    assert footer(STUDIES.values())["authors"] == known["authors"][0]["name"]


def test_the_site_has_licence_and_citation(tmp_path: Path) -> None:
    stage_licence(tmp_path)
    assert {one.name for one in tmp_path.iterdir()} == {"LICENSE.txt", "CITATION.cff"}
