"""Pages as written: complete, true of the code, and without measured figures."""

import inspect
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from snakemake.utils import validate

from analysis import ROOT
from analysis.base.reading import read_yaml
from analysis.results.store.keys import (
    CapturedVariant,
    CaptureFile,
    GpuKeys,
    HostKeys,
    Limits,
    Look,
    RunFile,
    Stages,
    VariantKeys,
)
from analysis.site.interface import FILES
from analysis.site.pages.macros import MACROS
from analysis.site.pages.reference import schema_of, schema_reference, schemas, study_schema
from analysis.study.claims.kinds import KINDS
from analysis.study.config import CONFIG_FILE, Settings
from tests.repository import STUDIES
from tests.roots import make_inputs
from tests.site.pages.conftest import page_in

CONTRACT, DATA, ARCHITECTURE = (
    (ROOT / "docs" / f"{name}.md").read_text() for name in ("contract", "data", "architecture")
)
TEXTS = "".join(path.read_text() for path in ROOT.glob("docs/**/*.md"))
NAMES = {"machine", "study", "variant", "case", "metric", "run", "round"}
"""Columns of every table, which the page describes once under `Names`."""


def keys_in(schema: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(key, schema) of all keys in files of this schema, at any depth."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {}).items()
        for part in schema.values():
            yield from keys_in(part)


@pytest.mark.parametrize(("name", "schema"), schemas().items())
def test_every_key_is_described_and_listed_and_schemas_are_current(name: str, schema: str) -> None:
    """If not: python -m analysis.site.pages.reference"""
    assert (ROOT / "config" / name).read_text() == schema
    keys = [*keys_in(json.loads(schema))]
    assert len(keys) > 10
    assert [key for key, part in keys if not part.get("description")] == []
    page = schema_reference(study_schema() if "study" in name else schema_of(Settings))
    assert [key for key, _ in keys if f"<td><code>{key}</code></td>" not in page] == []


@pytest.mark.parametrize("path", [*ROOT.glob("*/*/study.yaml"), CONFIG_FILE], ids=str)
def test_files_name_their_schema_and_follow_it(path: Path) -> None:
    named = re.match(r"# yaml-language-server: \$schema=(.*)\n", path.read_text())
    assert named
    validate(read_yaml(path), str((path.parent / named[1]).resolve()), set_default=False)


def test_kinds_of_claims_and_macros_are_listed_and_pages_use_all_macros(tmp_path: Path) -> None:
    page = page_in(tmp_path, make_inputs(tmp_path, STUDIES))
    kinds, listed = MACROS["claim_kinds"](page), MACROS["macro_list"](page)
    assert re.findall(r"<tr><td><code>(\w+)</code>.*?</tr>", kinds) == [*KINDS]
    for name, function in MACROS.items():
        meaning, _, arguments = (inspect.getdoc(function) or "").partition("\n\n")
        given = [*inspect.signature(function).parameters][1:]
        described = re.findall(r"^(\w+): ", arguments, re.MULTILINE)
        assert meaning.endswith(".") and (described or given) == given, name
        assert f"### `{name}(" in listed
    used = set(re.findall(r"(?:{{-?|{% if) *(\w+)\(", TEXTS)) - {"name"}
    assert used == {*MACROS}


def documented(text: str, heading: str) -> set[str]:
    """The names in the first column of the table that follows a heading or a name in bold."""
    body = text[text.index(f"\n{heading}") :]
    rows = re.search(r"\n\|[^\n]*\|\n\|[-|]+\|\n((?:\|[^\n]*\n)+)", body)
    assert rows, heading
    firsts = " ".join(row.split("|")[1] for row in rows[1].splitlines())
    return set(re.findall(r"`([^`]+)`", firsts))


EXPLAINED = {
    "<run>.csv": (DATA, "## Samples"),
    **{
        f"{name}.csv": (DATA, f"### {name}.csv {{")
        for name in ("summary", "ratios", "claims", "claim_parts", "model", "model_parameters")
    },
    "<run>.telemetry.csv": (CONTRACT, "### Telemetry"),
    "<run>.counters.csv": (CONTRACT, "`<run>.counters.csv` has"),
    "<run>.timeline.csv": (CONTRACT, "`<run>.timeline.csv` has"),
    "published/<study>.csv": (CONTRACT, "### Published figures"),
}


@pytest.mark.parametrize("file", EXPLAINED)
def test_every_column_has_a_meaning(file: str) -> None:
    columns, explained = set(FILES[file]), documented(*EXPLAINED[file])
    assert explained <= columns
    of_claims = set(FILES["claims.csv"]) if file == "claim_parts.csv" else set()
    assert columns - explained <= NAMES | of_claims


def test_the_contract_lists_the_columns_of_every_file_and_all_keys() -> None:
    assert set(re.findall(r"{{ columns\('([^']+)'\) }}", CONTRACT)) == set(FILES)
    for path in ROOT.glob("results/published/*.csv"):
        header = path.open().readline().strip().split(",")
        assert header == list(FILES["published/<study>.csv"]), path.name
    assert documented(CONTRACT, "### Description of a run") == {*RunFile.model_fields}
    assert documented(CONTRACT, "### The host") == {*HostKeys.model_fields}
    results = CONTRACT.partition("## Results")[2].partition("### Published figures")[0]
    for kind in (CapturedVariant, CaptureFile, GpuKeys, Limits, Look, Stages, VariantKeys):
        assert {key for key in kind.model_fields if f"`{key}`" not in results} == set()


def test_the_page_of_the_architecture_has_every_rule_and_part() -> None:
    stages = {path.name: path.read_text() for path in ROOT.glob("workflow/rules/*.smk")}
    rules = {rule for text in stages.values() for rule in re.findall(r"^rule (\w+):", text, re.M)}
    named = re.findall(r"^\| `\w+\.smk` \| ([^|]*) \|", ARCHITECTURE, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(named))) == rules
    assert not [n for n, text in stages.items() if "\nrule " in text and n not in ARCHITECTURE]
    rows = re.findall(r"^\| (\d) \| `(\w+)` \| .*\. \|$", ARCHITECTURE, re.MULTILINE)
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    layers = tools["importlinter"]["contracts"][0]["layers"]
    assert [name for _, name in rows] == [name for one in layers for name in one.split(" | ")]


def test_files_named_on_pages_for_contributors_exist() -> None:
    named: set[str] = set()
    for name in ("contributing", "architecture", "workload", "contract", "reference"):
        text = (ROOT / "docs" / f"{name}.md").read_text()
        named |= set(re.findall(r"`((?:analysis|workflow|config|env|tests)/[\w./-]+?/?)`", text))
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_pages_hold_no_measured_figure() -> None:
    figure = re.compile(r"\b\d[\d.,]*\s*(?:[GM]i?B/s|Gbps|[mµun]s\b|seconds|%|×|times faster)")
    for page in ROOT.glob("docs/**/*.md"):
        found = figure.findall(page.read_text())
        assert not found, f"{page.name}: {found}"


@pytest.mark.parametrize("file", sorted(ROOT.glob("*/*/*.svg")), ids=lambda file: file.stem)
def test_a_picture_is_described_and_on_a_page(file: Path) -> None:
    name, size = file.stem.split(".")
    root = ElementTree.parse(file).getroot()
    assert root.get("class") == f"hp-{size}" and root.get("role") == "img"
    for attribute, child in (("aria-labelledby", "title"), ("aria-describedby", "desc")):
        found = root.find(f"{{http://www.w3.org/2000/svg}}{child}")
        assert found is not None and found.text and found.get("id") == root.get(attribute)
        assert root.get(attribute) == f"{name}-hp-{size}-{child}"
    assert f"drawing('{name}'" in TEXTS
