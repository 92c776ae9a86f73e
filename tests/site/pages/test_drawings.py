"""Drawings: described in words at both widths, and on a page."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from analysis import ROOT

PAGES = "".join(page.read_text() for page in ROOT.glob("docs/**/*.md"))


@pytest.mark.parametrize("file", sorted(ROOT.glob("*/*/*.svg")), ids=lambda file: file.stem)
def test_a_picture_is_described_and_on_a_page(file: Path) -> None:
    name, size = file.stem.split(".")
    root = ElementTree.parse(file).getroot()
    assert root.get("class") == f"hp-{size}" and root.get("role") == "img"
    for attribute, child in (("aria-labelledby", "title"), ("aria-describedby", "desc")):
        found = root.find(f"{{http://www.w3.org/2000/svg}}{child}")
        assert found is not None and found.text and found.get("id") == root.get(attribute)
        assert root.get(attribute) == f"{name}-hp-{size}-{child}"
    assert f"drawing('{name}'" in PAGES
