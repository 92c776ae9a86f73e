"""What the pages about the whole repository embed: home, machines, data, agreement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.facts.inputs import Inputs
from analysis.facts.points import Context, anchor
from analysis.quantities import (
    INTERVAL,
    WITHIN,
    gigabytes_per_second,
    listing,
    percent,
    quantity,
    quantity_interval,
    ratio,
)
from analysis.report.html import Markup, code, link, table
from analysis.report.study_pages import NOTHING
from analysis.statistics import CONFIDENCE
from analysis.study import Variant


def overview(contexts: Mapping[str, Context], pages: Mapping[str, str]) -> str:
    """Every study with its question and what came out; `pages` are addresses by study. Markdown."""
    return "\n\n".join(
        "\n\n".join(
            [
                f"### [{context.study.title}]({pages[name]})"
                if name in pages
                else f"### {context.study.title}",
                context.study.question.strip(),
                _headline(context),
            ]
        )
        for name, context in contexts.items()
    )


def _headline(context: Context) -> str:
    """The fastest step on every machine, against the first step and the ceilings."""
    if not context.machines:
        return NOTHING
    if context.is_about_repeats:
        return agreement_sentence(context.inputs.repeats)
    ceilings = context.study.with_role("ceiling")
    first = next(iter(context.study.with_role("step", "beyond")), None)
    columns = ["machine", "fastest", "time", INTERVAL]
    columns += ["rate"] if context.has_rates else []
    columns += [f"against {first.name}"] if first else []
    columns += [f"of {ceiling.name}" for ceiling in ceilings]
    rows: list[list[object]] = []
    for machine in context.machines:
        best = context.fastest(machine)
        row = context.figure(machine, best) if best else None
        if best is None or first is None or row is None:
            rows.append([machine, "no step measured", *[""] * (len(columns) - 2)])
            continue
        seconds = float(row["median"])
        cells: list[object] = [
            machine,
            _with_ties(best, context.ties(machine)),
            quantity(seconds, "s") + (" (stale)" if row["stale"] else ""),
            quantity_interval(float(row["ci_low"]), float(row["ci_high"]), "s"),
        ]
        if context.has_rates:
            payload = context.shown_case(best).payload_bytes
            cells.append(gigabytes_per_second(payload / seconds / 1e9))
        cells.append(_against(context, machine, best, first))
        for ceiling in ceilings:
            compared = context.comparison(machine, best, ceiling)
            cells.append("" if compared is None else percent(float(compared["ratio"])))
        rows.append(cells)
    return table(columns, rows, caption=f"Case {context.study.headline}", numeric=columns[2:])


def _with_ties(best: Variant, ties: list[Variant]) -> Markup:
    """The fastest, and what it cannot be told apart from."""
    names = listing([code(other.name) for other in ties])
    return Markup(code(best.name) + (f", not told apart from {names}" if ties else ""))


def _against(context: Context, machine: str, best: Variant, first: Variant) -> str:
    """How many times as fast `best` is: paired by rounds where the two are compared, else the
    ratio of their medians, which says that it is one."""
    if best == first:
        return ratio(1.0)
    if (row := context.comparison(machine, best, first)) is not None:
        return ratio(float(row["ratio"]))
    if (row := context.comparison(machine, first, best)) is not None:
        return ratio(1 / float(row["ratio"]))
    figures = context.figures(machine, first, best)
    if not figures:
        return ""
    slow, fast = (float(figure["median"]) for figure in figures)
    return f"{ratio(slow / fast)} of medians"


def freshness(inputs: Inputs) -> str:
    """Machines, when and from which commit they were measured, what is stale; Markdown."""
    rows = []
    for machine, described in inputs.machines.items():
        entries = [entry for key, entry in inputs.provenance.items() if key[0] == machine]
        own = inputs.summary[inputs.summary["machine"] == machine]
        cells = own.drop_duplicates(["study", "variant", "case"])
        commits = sorted({_commit(entry) for entry in entries})
        rows.append(
            [
                machine,
                described.get("gpu") or "no GPU",
                max((entry["run"] for entry in entries), default=""),
                Markup(", ".join(code(commit) for commit in commits)),
                f"{cells[['study', 'variant']].drop_duplicates().shape[0]}",
                f"{len(cells)}",
                f"{int(cells['stale'].sum())}",
            ]
        )
    columns = ["machine", "GPU", "newest run", "commit", "variants", "cases", "of these stale"]
    parts = [table(columns, rows, numeric=columns[4:]) if rows else NOTHING]
    refused = inputs.refused.items()
    parts += [f"- **{machine}** is left out: {reason}" for machine, reason in refused]
    return "\n\n".join(parts)


def _commit(entry: Mapping[str, Any]) -> str:
    return f"{entry['commit'][:10]}{' with changes' if entry.get('dirty') else ''}"


def machine_table(inputs: Inputs) -> str:
    """What machine.json says of every machine: a column a machine, a row a fact."""
    if not inputs.machines:
        return NOTHING
    flat = {name: _flatten(described) for name, described in inputs.machines.items()}
    facts = list(dict.fromkeys(fact for described in flat.values() for fact in described))
    rows = [
        [fact.replace("_", " "), *(described.get(fact, "") for described in flat.values())]
        for fact in facts
    ]
    return table(["", *flat], rows)


def _flatten(described: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in described.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{name}, ")
        else:
            flat[name] = _fact(name, value)
    return flat


def _fact(name: str, value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    if name.endswith("_bytes") and isinstance(value, int) and value >= 2**20:
        return f"{value / 2**30:.1f} GiB"
    return str(value)


def provenance_table(inputs: Inputs) -> str:
    """For every machine and run: commit, compiler and how many variants it measured."""
    rows: dict[tuple[str, ...], int] = {}
    for (machine, study, _), entry in inputs.provenance.items():
        compiler = entry.get("compiler") or "not recorded"
        method = str(entry["method_version"])
        key = (machine, study, entry["run"], _commit(entry), str(compiler), method)
        rows[key] = rows.get(key, 0) + 1
    columns = ["machine", "study", "run", "commit", "compiler", "method", "variants"]
    filled = [[*key, str(count)] for key, count in sorted(rows.items())]
    return table(columns, filled, numeric=["variants"]) if filled else NOTHING


def sample_table(inputs: Inputs, files: Mapping[tuple[str, str, str], list[str]], root: str) -> str:
    """Links to the samples of every machine, study and variant; `files` are names in data/."""
    rows, ids = [], []
    for key, names in sorted(files.items()):
        machine, study, variant = key
        entry = inputs.provenance[key]
        runs = [entry["run"], *(run["run"] for run in entry["runs"])]
        links = ", ".join(
            link(f"{root}data/{machine}/{study}/{name}", name.removeprefix(f"{variant}."))
            for name in names
        )
        rows.append([machine, study, code(variant), ", ".join(runs), _commit(entry), Markup(links)])
        ids.append(anchor(machine, study, variant))
    columns = ["machine", "study", "variant", "runs kept", "commit", "files"]
    return table(columns, rows, ids=ids) if rows else NOTHING


def agreement_sentence(table_: pd.DataFrame) -> str:
    """How many of the comparisons in `table_`, all between repeats, were called different."""
    if table_.empty:
        return "No repeat of one program has been measured yet."
    counts = table_["verdict"].value_counts()
    different = int(counts.get("faster", 0)) + int(counts.get("slower", 0))
    return (
        f"Of {len(table_)} comparisons between two entries that are one program, {different}"
        f" ({percent(different / len(table_))}) were called faster or slower,"
        f" {counts.get('same', 0)} the same within {WITHIN} and"
        f" {counts.get('unclear', 0)} unclear."
    )


def agreement(inputs: Inputs) -> str:
    """How often the method called repeats of one program different; Markdown."""
    table_ = inputs.repeats
    sentence = agreement_sentence(table_)
    if table_.empty:
        return sentence
    sentence += (
        f" With {CONFIDENCE * 100:g} % intervals, {(1 - CONFIDENCE) * 100:.0f} % of false calls are"
        " to be expected, and fewer where intervals are so narrow that the verdict is `same`."
    )
    rows = []
    for (machine, study, variant), group in table_.groupby(["machine", "study", "variant"]):
        ratios = group["ratio"].astype(float)
        off = group["verdict"].isin(["faster", "slower"])
        rows.append(
            [
                *(machine, study, code(str(variant)), str(len(group)), str(int(off.sum()))),
                _extremes(ratios),
            ]
        )
    columns = ["machine", "study", "variant", "comparisons", "called different", "ratios from, to"]
    return f"{sentence}\n\n{table(columns, rows, numeric=columns[3:])}"


def _extremes(ratios: pd.Series) -> str:
    return f"{ratio(float(ratios.min()))} to {ratio(float(ratios.max()))}"
