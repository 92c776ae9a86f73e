"""Authors, licence and write-ups, for the footer of every page, and how to cite the project."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from analysis import ROOT
from analysis.base.quantities import listing
from analysis.base.reading import read_yaml
from analysis.site.pages.html import code
from analysis.site.pages.page import Page, macro
from analysis.study import Study

CITATION: Final = "CITATION.cff"
LICENCE: Final = "LICENSE"
FOLDER: Final = "hotpath"
"""Folder of a clone in examples."""
ADDRESS: Final = "ADDRESS"
"""In commands, if the settings name no address of the repository."""
EXAMPLE: Final = ROOT / "docs" / "assets" / "compare_example.txt"
MEANING: Final = f"{code(ADDRESS)} is the address that you cloned from"


def footer(studies: Iterable[Study]) -> dict[str, Any]:
    """The footer's content. The address of a write-up is empty if it has no public one."""
    known = read_yaml(ROOT / CITATION)
    addresses: dict[str, str] = {}
    for study in studies:
        if study.write_up is not None:
            addresses.setdefault(study.write_up.title, study.write_up.address or "")
    return {
        "authors": listing([one["name"] for one in known["authors"]]),
        "licence": known["license"],
        "write_ups": [{"title": title, "address": at} for title, at in addresses.items()],
    }


def stage_licence(folder: Path) -> None:
    """Put the licence and the citation file into the site's `folder`."""
    shutil.copy(ROOT / LICENCE, folder / f"{LICENCE}.txt")
    shutil.copy(ROOT / CITATION, folder)


@macro("clone")
def clone_command(page: Page) -> str:
    """The command that gets the code, with the repository's address of `docs/mkdocs.yml`."""
    address = _repository(page)
    command = code(f"git clone {address or ADDRESS} {FOLDER} && cd {FOLDER}")
    meaning = "" if address else f". {MEANING}; an archive of the code does as well"
    return f"Get the code: {command}{meaning}"


@macro("comparer_command")
def comparer_command(page: Page) -> str:
    """The command that runs the comparison without a checkout, in Markdown."""
    address = _repository(page)
    command = (
        f'uvx --from "git+{address or ADDRESS}#subdirectory=env/compare"'
        " hotpath-compare before.json after.json"
    )
    meaning = "" if address else f"\n\n{MEANING}."
    return f"```sh\n{command}\n```{meaning}"


@macro()
def comparer_example() -> str:
    """The output of the comparison for made-up times, which a test prints anew."""
    return f"```text\n{EXAMPLE.read_text(encoding='utf-8')}```"


def _repository(page: Page) -> str:
    """Address of the repository; empty if the settings have none."""
    return str(page.env.conf["extra"]["repository"])


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
