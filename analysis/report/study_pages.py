"""What the page of a study embeds: its steps, references, published figures and gaps."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.facts.captures import kernel_name
from analysis.facts.points import NOT_MEASURED, Context, Row, anchor
from analysis.quantities import (
    INTERVAL,
    digits,
    gigabytes_per_second,
    listing,
    percent,
    quantity,
    quantity_interval,
    ratio,
    ratio_interval,
    whole,
)
from analysis.report import evidence
from analysis.report.differences import (
    LANGUAGES,
    code_difference,
    fenced,
    setting_difference,
)
from analysis.report.html import code, link, table
from analysis.report.sentences import (
    headroom_sentence,
    order_sentences,
    reach_sentence,
    step_sentence,
)
from analysis.store.published import best_statement
from analysis.study import Variant

NOTHING = "No machine has been measured yet."


def lead(context: Context) -> str:
    """The question of the study and the text it goes back to."""
    study = context.study
    lines = [f"**{study.question.strip()}**"]
    if study.write_up:
        date = f", {study.write_up['date']}" if study.write_up["date"] else ""
        lines.append(
            f"The study reproduces *{study.write_up['title']}*{date}, measures it anew and goes on"
            " from there."
        )
    lines.append(f"Unless said otherwise, figures are for the headline case `{study.headline}`.")
    return "\n\n".join(lines)


def sections(
    context: Context,
    roles: Sequence[str],
    root: str,
    level: int = 3,
    built: pd.DataFrame | None = None,
) -> str:
    """A section for every variant with one of `roles`, in the order of study.yaml; Markdown.

    `built` is what the built modules' machine code does, by `read_machine_code`.
    """
    variants = context.study.with_role(*roles)
    numbered = tuple(roles) == ("step",)
    return "\n\n".join(
        _section(context, variant, f"{index}. " if numbered else "", root, level, built)
        for index, variant in enumerate(variants)
    )


def _section(
    context: Context,
    variant: Variant,
    number: str,
    root: str,
    level: int,
    built: pd.DataFrame | None,
) -> str:
    study = context.study
    after = f", after [`{variant.after}`](#{variant.after})" if variant.after else ""
    parts = [
        f"{'#' * level} {number}{variant.title} {{#{variant.name}}}",
        f"`{variant.name}`{after}",
        variant.idea.strip(),
    ]
    settings = setting_difference(study, variant)
    if settings:
        parts.append(f"study.yaml sets {listing(settings)}.")
    difference = code_difference(study, variant)
    if difference:
        parts.append(fenced(difference, "diff"))
    elif variant.after and not settings:
        parts.append(f"The same source as `{variant.after}`, unchanged.")
    parts.append(
        f'??? source "Full source: {variant.path.name}"\n\n'
        + fenced(variant.path.read_text(), LANGUAGES[variant.path.suffix], indent=4)
    )
    compiled = _resources(context, variant)
    if compiled:
        parts.append(compiled)
    if built is not None:
        parts.append(evidence.machine_code(context, variant, built))
    parts.append(_figures(context, variant, root))
    say = step_sentence if variant.role in ("step", "beyond") or variant.after else reach_sentence
    said = [say(context, machine, variant) for machine in context.machines]
    parts += [f"- {sentence}" for sentence in said if sentence]
    parts.append(evidence.counters(context, variant, root))
    parts += evidence.gaps(context, variant)
    return "\n\n".join(part for part in parts if part)


def _resources(context: Context, variant: Variant) -> str:
    table_ = context.inputs.resources
    own = table_[(table_["study"] == context.study.name) & (table_["variant"] == variant.name)]
    described: dict[str, list[str]] = {}  # kernels by what is said of them
    for _, row in own.drop_duplicates(["arch", "kernel"]).iterrows():
        spills = int(row["spill_store_bytes"]) + int(row["spill_load_bytes"])
        said = (
            f"{row['registers']} registers a thread for {row['arch']}, "
            + (f"{spills} B of spills" if spills else "no spills")
            + (f", {row['shared_bytes']} B of static shared memory" if row["shared_bytes"] else "")
        )
        described.setdefault(said, []).append(f"`{kernel_name(row['kernel'])}`")
    if len(described) <= own["arch"].nunique():
        return f"Compiled: {'; '.join(described)}." if described else ""
    kernels = [f"{listing(names)} with {said}" for said, names in described.items()]
    return f"Compiled: {'; '.join(kernels)}."


def _figures(context: Context, variant: Variant, root: str) -> str:
    """What the variant takes on each machine in its shown case."""
    if not context.machines:
        return NOTHING
    case = context.shown_case(variant)
    before = context.study.variant(variant.after) if variant.after else None
    is_step = variant.role in ("step", "beyond")
    ceilings = context.study.with_role("ceiling") if is_step else []
    others = [name for name, metric in context.study.metrics.items() if metric.unit != "s"]
    others = [name for name in others if _has_metric(context, variant, name)]
    columns = ["machine", "clock", "time", INTERVAL]
    columns += ["rate"] if case.payload_bytes else []
    columns += [f"against {before.name}"] if before else []
    columns += [f"of {ceiling.name}" for ceiling in ceilings]
    columns += [context.study.metrics[name].label for name in others]
    rows: list[list[object]] = []
    for machine in context.machines:
        samples = link(f"{root}data/#{anchor(machine, context.study.name, variant.name)}", machine)
        row: list[object] = [samples]
        figure = context.figure(machine, variant)
        if figure is None:
            state, reason = context.absence(machine, variant, case)
            note = f"{state}: {reason}" if reason else state
            first = machine if state == NOT_MEASURED else samples
            rows.append([first, note, *[""] * (len(columns) - 2)])
            continue
        seconds = float(figure["median"])
        row += [context.study.metrics[figure["metric"]].label + _flags(figure)]
        row += [quantity(seconds, "s")]
        row += [quantity_interval(float(figure["ci_low"]), float(figure["ci_high"]), "s")]
        if case.payload_bytes:
            row.append(gigabytes_per_second(case.payload_bytes / seconds / 1e9))
        if before:
            row.append(_ratio_cell(context.comparison(machine, variant, before)))
        row += [_share_cell(context, machine, variant, ceiling) for ceiling in ceilings]
        row += [_other_metric(context, machine, variant, name) for name in others]
        rows.append(row)
    where = "" if case.id == context.study.headline else f"Case {case.id}"
    return table(columns, rows, caption=where, numeric=columns[2:])


def _flags(figure: Row) -> str:
    flags = []
    if figure["stale"]:
        flags.append("stale")
    if not figure["verified"]:
        flags.append("not verified")
    if figure["throttled"] > 0:
        flags.append(f"throttled in {percent(float(figure['throttled']))} of samples")
    return "".join(f", {flag}" for flag in flags)


def _ratio_cell(row: Row | None) -> str:
    if row is None:
        return ""
    interval = ratio_interval(float(row["ci_low"]), float(row["ci_high"]))
    return ratio(float(row["ratio"])) + (f" ({interval})" if interval else "")


def _share_cell(context: Context, machine: str, variant: Variant, ceiling: Variant) -> str:
    row = context.comparison(machine, variant, ceiling)
    return percent(float(row["ratio"])) if row is not None else ""


def _has_metric(context: Context, variant: Variant, metric: str) -> bool:
    return any(
        (machine, variant.name, context.shown_case(variant).id, metric) in context.summary
        for machine in context.machines
    )


def _other_metric(context: Context, machine: str, variant: Variant, metric: str) -> str:
    row = context.summary.get((machine, variant.name, context.shown_case(variant).id, metric))
    if row is None:
        return ""
    return quantity(float(row["median"]), row["unit"])


def order(context: Context) -> str:
    """Where the measured order of the journey's steps is not the one told; Markdown."""
    if not context.machines:
        return NOTHING
    sentences = order_sentences(context)
    if sentences:
        return "\n".join(f"- {sentence}" for sentence in sentences)
    return (
        "On every machine measured so far, no step of the journey is surely slower than an earlier"
        " one: the order in which these steps are told is also that of their speed, or they cannot"
        " be told apart. Variants beyond the journey have no place in that order."
    )


def headroom(context: Context, claim: str, bound: str) -> str:
    """How far `bound` could take the speed-up a claim measures, an item a machine; Markdown."""
    rows = context.claims.get(claim, [])
    said = [headroom_sentence(context, str(row["machine"]), row, bound) for row in rows]
    return "\n".join(f"- {sentence}" for sentence in said if sentence) or NOTHING


def metric_table(context: Context, roles: Sequence[str]) -> str:
    """Every metric of the variants with these roles in their shown case, on every machine."""
    rows = []
    for variant in context.study.with_role(*roles):
        case = context.shown_case(variant).id
        for machine in context.machines:
            for name, metric in context.study.metrics.items():
                row = context.summary.get((machine, variant.name, case, name))
                if row is None:
                    continue
                low, high = float(row["ci_low"]), float(row["ci_high"])
                rows.append(
                    [
                        *(variant.title, machine, metric.label),
                        quantity(float(row["median"]), metric.unit),
                        quantity_interval(low, high, metric.unit),
                        *(whole(float(row["n"])), "stale" if row["stale"] else ""),
                    ]
                )
    columns = ["operation", "machine", "metric", "median", INTERVAL, "samples", ""]
    return table(columns, rows, numeric=columns[3:6]) if rows else NOTHING


def published_table(context: Context) -> str:
    """What the write-up printed, what that is in SI, and what each machine measures."""
    published = context.inputs.published[context.study.name]
    if published.empty:
        return "Nothing has been published for this study."
    # What all rows share is told in the caption.
    told = [name for name in ("case", "source") if published[name].nunique() > 1]
    columns = ["variant", *told, "as printed", "time", "rate", *context.machines]
    rows = []
    for _, row in best_statement(published).iterrows():
        cell = ["variant", "case", "source"]
        both = published[(published[cell] == row[cell]).all(axis=1)]
        printed = "; ".join(f"{one['printed']} {one['unit_printed']}" for _, one in both.iterrows())
        time, rate = quantity(float(row["seconds"]), "s"), gigabytes_per_second(float(row["rate"]))
        rows.append(
            [
                *(code(row["variant"]), *row[told], printed, time, rate),
                *(_measured_rate(context, machine, row) for machine in context.machines),
            ]
        )
    units = published.drop_duplicates(["unit_printed", "unit_meant", "note"])
    notes = "; ".join(
        f"{one['unit_printed']}: {one['note']}"
        + (f", so {one['unit_meant']}" if one["unit_meant"] != one["unit_printed"] else "")
        for _, one in units.iterrows()
    )
    sources = listing(sorted(set(published["source"])))
    filled = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    columns, rows = [columns[i] for i in filled], [[row[i] for i in filled] for row in rows]
    numeric = columns[2 + len(told) :]
    return table(columns, rows, caption=f"{sources}. {notes}", numeric=numeric)


def _measured_rate(context: Context, machine: str, row: pd.Series) -> str:
    figure = context.summary.get((machine, row["variant"], row["case"], row["metric"]))
    if figure is None:
        return ""
    seconds = float(figure["median"])
    if not row["payload_bytes"]:
        return quantity(seconds, "s")
    return f"{digits(row['payload_bytes'] / seconds / 1e9)} GB/s"


def skipped_table(context: Context) -> str:
    """Every case that was skipped or failed, with the reason."""
    own = context.inputs.of_study(context.inputs.skipped, context.study)
    if own.empty:
        return "Nothing was skipped." if context.machines else NOTHING
    columns = ["machine", "variant", "status", "reason"]
    groups = own.groupby(columns, sort=True)["case"].agg(list).reset_index()
    rows = [
        [machine, code(variant), status, reason, _case_list(context, variant, cases)]
        for machine, variant, status, reason, cases in groups.itertuples(index=False)
    ]
    return table([*columns, "cases"], rows)


def _case_list(context: Context, variant: str, cases: list[str]) -> str:
    if len(cases) == len(context.study.variant(variant).cases):
        return f"all {len(cases)}"
    return "; ".join(cases)
