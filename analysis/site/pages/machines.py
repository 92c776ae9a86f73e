"""Machines: what they reported, their runs and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from markupsafe import Markup

from analysis.base.quantities import binary
from analysis.site.facts.addresses import samples_anchor
from analysis.site.facts.inputs import RunFile
from analysis.site.pages.html import NO_HTML, code, element, joined, link, plain, table
from analysis.site.pages.page import Page, macro, root_from
from analysis.site.pages.source import source_path


@macro
def freshness(page: Page) -> str:
    """Newest run of each machine, its cases, stale ones and disturbed rounds; refused results."""
    inputs, rows = page.inputs, []
    summary = inputs.tables["summary"]
    for machine, described in inputs.machines.items():
        runs = [run for run in inputs.runs if run.machine == machine]
        cases = summary[summary["machine"] == machine].drop_duplicates(["study", "variant", "case"])
        rows.append(
            {
                "machine": inputs.called(machine),
                "GPU": described.get("gpu") or "no GPU",
                "newest run": element("time", max(run.begun for run in runs)),
                "variants": str(len(cases.drop_duplicates(["study", "variant"]))),
                "cases": str(len(cases)),
                "stale cases": str(int(cases["stale"].sum())),
                "disturbed rounds": str(sum(len(run.disturbed) for run in runs)),
            }
        )
    refused = (
        f"- **{plain(name)}** is left out: {plain(why)}" for name, why in inputs.refused.items()
    )
    return "\n\n".join(filter(None, [table(rows), *refused]))


@macro
def machine_table(page: Page) -> Markup:
    """The description of every machine, a column for each; empty where one lacks a fact."""
    called, machines = page.inputs.called, page.inputs.machines
    # Unknown facts are null, but a machine without a GPU is known to have none.
    flat = {
        called(name): dict(_flat({"results folder": name, **one, "gpu": one.get("gpu") or "none"}))
        for name, one in machines.items()
    }
    facts = dict.fromkeys(fact for of_machine in flat.values() for fact in of_machine)
    words = {fact: fact.replace("_", " ").replace("nvlinks", "NVLinks") for fact in facts}
    return table(
        {"": words[fact], **{name: known.get(fact, "") for name, known in flat.items()}}
        for fact in facts
    )


def _flat(described: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in described.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}, ")
        else:
            yield prefix + key, _fact(value, is_bytes=key.endswith("bytes"))


def _fact(value: Any, *, is_bytes: bool = False) -> str:
    if isinstance(value, list):
        return ", ".join(map(_fact, value))
    if is_bytes and value is not None:
        return f"{value / 2**30:.1f} GiB" if value >= 2**30 else binary(value)
    words = {None: "unknown", True: "yes", False: "no"}
    if value is None or isinstance(value, bool):
        return words[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


@macro
def hosts(page: Page) -> Markup:
    """Every host of a machine: its runs, driver, cores and memory."""
    rows = []
    runs = sorted(page.inputs.runs, key=lambda run: (run.machine, run.host.id, run.begun))
    for (machine, name), group in groupby(runs, lambda run: (run.machine, run.host.id)):
        of_host = list(group)
        host, days = of_host[-1].host, [run.begun[:10] for run in of_host]
        rows.append(
            {
                "machine": page.inputs.called(machine),
                "host": code(name),
                "studies": str(len({run.study for run in of_host})),
                "runs": str(len(of_host)),
                "days": " to ".join(dict.fromkeys([days[0], days[-1]])),
                "driver": _fact(host.driver),
                "cores": _fact(host.cores),
                "memory": _fact(host.memory_bytes, is_bytes=True),
            }
        )
    return table(rows)


@macro
def provenance(page: Page) -> Markup:
    """Every run of every machine: commit, compiler, number of variants."""
    return table(
        {
            "machine": page.inputs.called(run.machine),
            "study": run.study,
            "run": element("time", run.begun),
            "host": code(run.host.id),
            "commit": _commit(run),
            "compiler": "; ".join(
                f"{name} {value}"
                for name, value in run.compiler.model_dump(exclude_none=True).items()
            ),
            "method": str(run.method_version),
            "disturbed rounds": "; ".join(
                f"{one.round + 1}: {', '.join(one.why)}" for one in run.disturbed
            ),
            "variants": str(len(run.variants)),
        }
        for run in page.inputs.runs
    )


def _commit(run: RunFile) -> str:
    if run.commit is None:
        return "unknown"
    return f"{run.commit[:10]}{' with changes' if run.dirty else ''}"


@macro
def samples(page: Page) -> Markup:
    """Links to all files of results, folded for each machine and study."""
    inputs, folds = page.inputs, []
    for (machine, study), group in groupby(inputs.runs_of, key=lambda key: key[:2]):
        keys, called = list(group), inputs.called(machine)
        path = f"data/{machine}/{study}/index.html"
        has_page = study in page.staged.pages
        rows = []
        for key in keys:
            name, runs = key[2], inputs.runs_of[key]
            is_shown = has_page and name in inputs.studies[study].variant_names
            address = root_from(path) + source_path(study, name)
            files = (link(f"{run.run}.csv", run.begun) for run in reversed(runs))
            rows.append(
                {
                    "variant": link(address, code(name)) if is_shown else code(name),
                    # assets/samples.js plots the files of the second column.
                    "samples of the runs": joined(", ", files),
                    "commit of the newest": _commit(runs[-1]),
                    "code": "" if inputs.fresh_runs(key) else "has changed since",
                }
            )
        names = [file.name for file in inputs.files(machine, study)]
        of_runs = groupby(names, key=lambda file: file.partition(".")[0])
        of_run = (
            {
                "run or capture": code(name),
                "files": joined(", ", (link(file, file.partition(".")[2]) for file in of_name)),
            }
            for name, of_name in of_runs
        )
        content = table(rows, ids=[samples_anchor(*key) for key in keys]) + table(of_run)
        summary = f"{called}, {study}: {len(keys)} variants"
        title = f"Samples of {study} on {called}"
        folds.append(page.fold(path, summary, title, content, f"{machine}-{study}"))
    return NO_HTML.join(folds)
