"""The package as a table: its parts by layer, what each is for and what it imports."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import grimp
from markupsafe import Markup

from analysis import ROOT
from analysis.site.pages.html import code, joined, table
from analysis.site.pages.page import macro

PACKAGE: Final = "analysis"


@dataclass(frozen=True)
class Structure:
    """Parts of the package by layer from the top, what each is for, and what each imports."""

    layers: Sequence[Sequence[str]]
    purposes: Mapping[str, str]
    imports: Mapping[str, frozenset[str]]


def read_structure() -> Structure:
    """The layers of the contract in pyproject.toml, first sentences of docstrings, and imports."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [
        [name.strip() for name in line.split("|")] for line in settings["contracts"][0]["layers"]
    ]
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    names = [name for layer in layers for name in layer]
    return Structure(
        layers=layers,
        purposes={name: _first_sentence(f"{PACKAGE}.{name}") for name in names},
        imports={
            name: frozenset(
                other
                for other in names
                if other != name
                and graph.direct_import_exists(
                    importer=f"{PACKAGE}.{name}", imported=f"{PACKAGE}.{other}", as_packages=True
                )
            )
            for name in names
        },
    )


def _first_sentence(module: str) -> str:
    paragraph = (importlib.import_module(module).__doc__ or "").partition("\n\n")[0]
    return re.split(r"(?<=\.)\s", paragraph.replace("\n", " "))[0]


@macro()
def parts() -> Markup:
    """Every part of the package from the top layer, its purpose, and the parts that it imports."""
    structure = read_structure()
    order = [name for layer in structure.layers for name in layer]
    return table(
        {
            "layer": str(len(structure.layers) - above),
            "part": code(name),
            "purpose": structure.purposes[name],
            "imports": joined(
                ", ", (code(other) for other in order if other in structure.imports[name])
            ),
        }
        for above, layer in enumerate(structure.layers)
        for name in layer
    )
