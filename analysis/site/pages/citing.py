"""Authors, licence and write-ups, for the footer of every page, and how to get and cite the
project."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from analysis import ROOT
from analysis.base.quantities import listing
from analysis.base.reading import read_yaml
from analysis.site.pages.html import code
from analysis.site.pages.page import Page, macro
from analysis.study import Study

FOLDER: Final = "hotpath"
"""Folder of a clone in examples."""
ADDRESS: Final = "ADDRESS"
"""In commands, if the settings name no address of the repository."""
EXAMPLE: Final = ROOT / "docs" / "assets" / "compare_example.txt"
MEANING: Final = f"{code(ADDRESS)} is the address that you cloned from"


def footer(studies: Iterable[Study]) -> dict[str, Any]:
    """The footer's content. The address of a write-up is empty if it has no public one."""
    known = read_yaml(ROOT / "CITATION.cff")
    write_ups = {
        study.write_up.title: study.write_up.address or "" for study in studies if study.write_up
    }
    return {
        "authors": listing([one["name"] for one in known["authors"]]),
        "licence": known["license"],
        "write_ups": [{"title": title, "address": at} for title, at in write_ups.items()],
    }


@macro("clone")
def clone_command(page: Page) -> str:
    """The command that gets the code, with the repository's address of `docs/mkdocs.yml`."""
    address = str(page.env.conf["extra"]["repository"])
    command = code(f"git clone {address or ADDRESS} {FOLDER} && cd {FOLDER}")
    return f"Get the code: {command}" + ("" if address else f". {MEANING}")


@macro("comparer_command")
def comparer_command(page: Page) -> str:
    """The command that runs the comparison without a checkout, in Markdown."""
    address = str(page.env.conf["extra"]["repository"])
    command = (
        f'uvx --from "git+{address or ADDRESS}#subdirectory=env/compare"'
        " hotpath-compare before.json after.json"
    )
    return f"```sh\n{command}\n```" + ("" if address else f"\n\n{MEANING}.")


@macro()
def comparer_example() -> str:
    """The output of the comparison for made-up times, which a test prints anew."""
    return f"```text\n{EXAMPLE.read_text(encoding='utf-8')}```"


@macro()
def citation() -> str:
    """The project as a BibTeX entry, from CITATION.cff."""
    known = read_yaml(ROOT / "CITATION.cff")
    fields = {
        "title": f"{{{known['title']}}}",
        "author": f"{{{' and '.join(one['name'] for one in known['authors'])}}}",
        "year": str(known["date-released"])[:4],
        "version": known["version"],
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join(["```bibtex", "@software{hotpath,", *lines, "}", "```"])
