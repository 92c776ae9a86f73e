"""Machines, the runs on them, and their files: what the home, machines and data pages embed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from markupsafe import Markup

from analysis.base.quantities import listing
from analysis.site.facts.addresses import samples_anchor
from analysis.site.facts.inputs import Inputs, RunFile, VariantKey
from analysis.site.pages.fragments import Place
from analysis.site.pages.html import code, joined, link, moment, plain, table
from analysis.site.pages.page import macro
from analysis.site.pages.sentences import NOTHING

UNITS: Final = {"bytes": ("", "B"), "mhz": (" clock", "MHz"), "w": ("", "W")}
"""Meaning and unit of the last word of a key of a host."""
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
        runs = inputs.runs_on(machine)
        measured = inputs.tables["summary"][inputs.tables["summary"]["machine"] == machine]
        cases = measured.drop_duplicates(["study", "variant", "case"])
        stale = cases[cases["stale"].astype(bool)]
        only_in_full = sum(_is_only_in_full(inputs, row) for row in stale.itertuples())
        newest = {run.study: run for run in runs}
        commits = sorted({_commit(run) for run in newest.values()})
        rows.append(
            [
                inputs.called(machine),
                described.get("gpu") or "no GPU",
                moment(max(run.begun for run in runs)),
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
        (run.study, run.run, one.round) for run in inputs.runs_on(machine) for one in run.disturbed
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
    columns = ["machine", "study", "run", "host", "commit", "compiler", "method"]
    columns += ["disturbed rounds", "variants"]
    rows = [
        [
            *(inputs.called(run.machine), run.study, moment(run.begun), code(run.host.id)),
            *(_commit(run), _compiler(run), str(run.method_version)),
            "; ".join(f"{one.round + 1}: {', '.join(one.why)}" for one in run.disturbed),
            str(len(run.variants)),
        ]
        for run in inputs.runs
    ]
    return table(columns, rows, numeric=["variants"]) if rows else NOTHING


def _compiler(run: RunFile) -> str:
    """`nvcc 13.0; cxx g++ 13.3.0; arch sm_90`: what is recorded of it."""
    given = run.compiler.model_dump(exclude_none=True)
    return "; ".join(f"{name} {value}" for name, value in given.items())


def sample_tables(inputs: Inputs, sources: Mapping[VariantKey, str], place: Place) -> str:
    """Links to all files of results, folded for each machine and study; `sources` are names of the
    variants' sources in data/."""
    tables = []
    for (machine, study), group in groupby(inputs.runs_of, key=lambda key: key[:2]):
        keys = list(group)
        called = inputs.called(machine)
        summary = f"{called}, {study}: {len(keys)} variants"
        content = _samples_of(inputs, keys, sources) + _files_of(inputs, machine, study)
        path = f"data/{machine}/{study}/index.html"
        title = f"Samples of {study} on {called}"
        tables.append(place.folded(path, summary, title, content, anchor=f"{machine}-{study}"))
    return "\n\n".join(tables) or NOTHING


def _samples_of(
    inputs: Inputs, keys: Sequence[VariantKey], sources: Mapping[VariantKey, str]
) -> Markup:
    """A row per variant of one study on one machine, with the samples of each of its runs; links
    are to the same folder."""
    rows = []
    for key in keys:
        runs = inputs.runs_of[key]
        samples = joined(", ", (link(f"{run.run}.csv", run.begun) for run in reversed(runs)))
        source = link(sources[key], "source") if key in sources else ""
        rows.append([code(key[2]), samples, _commit(runs[-1]), source])
    columns = ["variant", "samples of the runs", "commit of the newest", "source"]
    return table(columns, rows, ids=[samples_anchor(*key) for key in keys])


def _files_of(inputs: Inputs, machine: str, study: str) -> Markup:
    """A row per run or capture of one study on one machine, with its files."""
    files = [path.name for path in inputs.files(machine, study)]
    rows = [
        [code(name), joined(", ", (link(file, file.partition(".")[2]) for file in group))]
        for name, group in groupby(files, key=lambda file: file.partition(".")[0])
    ]
    return table(["run or capture", "files"], rows)


def _commit(run: RunFile) -> str:
    if run.commit is None:
        return "unknown"
    return f"{run.commit[:10]}{' with changes' if run.dirty else ''}"
