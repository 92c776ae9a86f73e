"""Machines, the runs on them, and their files: what the home, machines and data pages embed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from markupsafe import Markup

from analysis.base.quantities import listing
from analysis.site.facts.addresses import samples_anchor
from analysis.site.facts.inputs import Inputs, VariantKey
from analysis.site.pages.fragments import Place
from analysis.site.pages.html import code, joined, link, moment, plain, table
from analysis.site.pages.page import macro
from analysis.site.pages.sentences import NOTHING

UNITS: Final = {"bytes": ("", "B"), "mhz": (" clock", "MHz"), "w": ("", "W")}
"""Meaning and unit of the last word of a key of machine.json."""
WRITTEN: Final = {
    **{word: word.upper() for word in ("gpu", "cpu", "cuda", "ecc", "numa", "sm")},
    "gpus": "GPUs",
    "sms": "SMs",
    "pcie": "PCIe",
    "nvlinks": "NVLinks",
}
"""Words of those keys as the field writes them."""
_WORD: Final = re.compile(r"[^ ,]+")


@macro()
def freshness(inputs: Inputs) -> str:
    """Time and commit of each machine's measurements, and stale results.

    Stale cases of the full grid have a column of their own: a default run measures only the others
    again.
    """
    rows = []
    for machine, described in inputs.machines.items():
        entries = [entry for key, entry in inputs.provenance.items() if key[0] == machine]
        measured = inputs.tables["summary"][inputs.tables["summary"]["machine"] == machine]
        cases = measured.drop_duplicates(["study", "variant", "case"])
        stale = cases[cases["stale"].astype(bool)]
        only_in_full = sum(_is_only_in_full(inputs, row) for row in stale.itertuples())
        commits = sorted({_commit(entry) for entry in entries})
        rows.append(
            [
                inputs.called(machine),
                described.get("gpu") or "no GPU",
                moment(max((entry["run"] for entry in entries), default="")),
                joined(", ", map(code, commits)),
                str(len(cases.drop_duplicates(["study", "variant"]))),
                str(len(cases)),
                str(len(stale) - only_in_full),
                str(only_in_full),
                str(len(_disturbed_rounds(inputs, machine))),
            ]
        )
    columns = ["machine", "GPU", "newest run", "commit", "variants", "cases"]
    columns += ["stale cases", "stale cases of the full grid", "disturbed rounds"]
    parts: list[str] = [table(columns, rows, numeric=columns[4:]) if rows else NOTHING]
    refused = inputs.refused.items()
    parts += [f"- **{plain(name)}** is left out: {plain(reason)}" for name, reason in refused]
    return "\n\n".join(parts)


def _is_only_in_full(inputs: Inputs, row: Any) -> bool:
    """Whether only the full grid has this case of the table `summary`; not if its code is gone."""
    study = inputs.studies.get(row.study)
    if study is None or row.variant not in study.variant_names:
        return False
    case = study.variant(row.variant).case(row.case)
    return case is not None and case.grid == "full"


def _disturbed_rounds(inputs: Inputs, machine: str) -> set[tuple[str, str, int]]:
    """Study, run and number of the rounds that something disturbed, in all runs that are kept."""
    return {
        (study, entry["run"], one["round"])
        for study, entry in inputs.runs_on(machine)
        for one in entry.get("disturbed", [])
    }


@macro()
def machine_table(inputs: Inputs) -> str:
    """The description of every machine."""
    if not inputs.machines:
        return NOTHING
    folders = ["results folder", *map(code, inputs.machines)]
    rows = [[fact, *values] for fact, values in described_facts(inputs.machines).items()]
    return table(["", *map(inputs.called, inputs.machines)], [folders, *rows])


@macro(may_be_empty=True)
def virtual_machines(inputs: Inputs) -> str:
    """A note if figures come from virtual machines."""
    return virtual_note(inputs, list(inputs.machines))


def virtual_note(inputs: Inputs, machines: Sequence[str], root: str = "") -> str:
    """Which of `machines` are virtual, in Markdown; empty if none is. `root` leads to the root."""
    names = [inputs.called(one) for one in machines if inputs.machines[one].get("hypervisor")]
    if not names:
        return ""
    return (
        f"All hosts of {listing(names)} are virtual machines. A hypervisor may add"
        f" address translation, take CPU time and hide the CPU's clock: [what that"
        f" changes]({root}machines.md#virtual-machines)."
    )


def described_facts(machines: Mapping[Any, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Each fact of the descriptions of `machines`, and what each of them says; empty where one says
    nothing of it."""
    # Unknown facts are null, but a machine without a GPU is known to have none.
    flat = [_flatten({**one, "gpu": one.get("gpu") or "none"}) for one in machines.values()]
    names = dict.fromkeys(fact for described in flat for fact in described)
    return {name: [described.get(name, "") for described in flat] for name in names}


def _flatten(described: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in described.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{name}, ")
        else:
            label, unit = _label(name)
            flat[label] = _fact(value, unit)
    return flat


def _label(name: str) -> tuple[str, str]:
    """Label of a key, and the unit that it ends in; empty without one."""
    kept, _, last = name.rpartition(" ")
    of, unit = UNITS.get(last, ("", "")) if kept else ("", "")
    written = _WORD.sub(lambda word: WRITTEN.get(word[0], word[0]), kept if unit else name)
    return written + of, unit


def _fact(value: Any, unit: str) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_fact(item, unit) for item in value)
    if unit == "B" and isinstance(value, int) and value >= 2**20:
        return f"{value / 2**30:.1f} GiB" if value >= 2**30 else f"{value / 2**20:g} MiB"
    return f"{value:g} {unit}" if unit else str(value)


@macro("provenance")
def provenance_table(inputs: Inputs) -> str:
    """Every run of every machine: commit, compiler, number of variants."""
    rows: dict[tuple[str, ...], int] = {}
    for (machine, study, _), entry in inputs.provenance.items():
        method = str(entry["method_version"])
        disturbed = "; ".join(
            f"{one['round'] + 1}: {', '.join(one['why'])}" for one in entry.get("disturbed", [])
        )
        key = (machine, study, entry["run"], _commit(entry), _compiler(entry), method, disturbed)
        rows[key] = rows.get(key, 0) + 1
    columns = ["machine", "study", "run", "commit", "compiler", "method"]
    columns += ["disturbed rounds", "variants"]
    filled = [
        [inputs.called(machine), study, moment(run), *rest, str(count)]
        for (machine, study, run, *rest), count in sorted(rows.items())
    ]
    return table(columns, filled, numeric=["variants"]) if filled else NOTHING


def _compiler(entry: Mapping[str, Any]) -> str:
    """`arch sm_90; cxx g++ 13.3.0; nvcc 13.0`: what is recorded of it."""
    given = entry.get("compiler")
    if not isinstance(given, Mapping):
        return str(given or "not recorded")
    return "; ".join(f"{name} {_listed(value)}" for name, value in given.items() if value)


def _listed(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def sample_tables(inputs: Inputs, files: Mapping[VariantKey, list[str]], place: Place) -> str:
    """Links to the samples of every variant, a folded table for each machine and study; `files`
    are names in data/."""
    tables = []
    for (machine, study), group in groupby(sorted(files.items()), key=lambda one: one[0][:2]):
        table, count = _samples_of(inputs, dict(group))
        folder = f"data/{machine}/{study}"
        called = inputs.called(machine)
        summary = f"{called}, {study}: {count} variants"
        anchor = f"{machine}-{study}"
        title = f"Samples of {study} on {called}"
        path = f"{folder}/index.html"
        tables.append(place.folded(path, summary, title, table, anchor=anchor))
    return "\n\n".join(tables) or NOTHING


def _samples_of(inputs: Inputs, files: Mapping[VariantKey, list[str]]) -> tuple[Markup, int]:
    """A row a variant of one study on one machine, and how many; links are to the same folder."""
    rows, ids = [], []
    for key, names in files.items():
        machine, study, variant = key
        entry = inputs.provenance[key]
        runs = [entry["run"], *(run["run"] for run in entry["runs"])]
        links = joined(
            ", ",
            (link(name, name.removeprefix(f"{variant}.")) for name in names),
        )
        rows.append([code(variant), ", ".join(runs), _commit(entry), links])
        ids.append(samples_anchor(machine, study, variant))
    return table(["variant", "runs kept", "commit", "files"], rows, ids=ids), len(rows)


def _commit(entry: Mapping[str, Any]) -> str:
    if entry["commit"] is None:
        return "unknown"
    return f"{entry['commit'][:10]}{' with changes' if entry.get('dirty') else ''}"
