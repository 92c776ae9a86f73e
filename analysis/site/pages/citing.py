"""Authors, licence and write-ups, for the footer of every page, and how to cite the project."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from analysis import ROOT
from analysis.base.quantities import listing
from analysis.base.schema import read_yaml
from analysis.site.pages.page import macro
from analysis.study import Study

CITATION: Final = "CITATION.cff"
LICENCE: Final = "LICENSE"


def footer(studies: Iterable[Study], pages: Iterable[str]) -> dict[str, Any]:
    """The footer's content. A write-up without an address leads to the first of the `pages` of
    studies about it."""
    known = read_yaml(ROOT / CITATION)
    shown = set(pages)
    addresses: dict[str, str] = {}
    for study in studies:
        if study.write_up is not None:
            page = f"studies/{study.name}/" if study.name in shown else "."
            addresses.setdefault(study.write_up.title, study.write_up.address or page)
    return {
        "authors": listing([one["name"] for one in known["authors"]]),
        "licence": known["license"],
        "write_ups": [{"title": title, "address": at} for title, at in addresses.items()],
    }


def stage_licence(folder: Path) -> None:
    """Put the licence and the citation file into the site's `folder`."""
    shutil.copy(ROOT / LICENCE, folder / f"{LICENCE}.txt")
    shutil.copy(ROOT / CITATION, folder)


@macro()
def citation() -> str:
    """The project as a BibTeX entry, from CITATION.cff."""
    known = read_yaml(ROOT / CITATION)
    fields = {
        "title": f"{{{known['title']}}}",
        "author": f"{{{' and '.join(one['name'] for one in known['authors'])}}}",
        "year": str(known["date-released"])[:4],
        "version": known["version"],
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join(["```bibtex", "@software{hotpath,", *lines, "}", "```"])
