"""A variant's code and its difference from the step before, what the compiler made of it, its
figures and counters, folded; and the folded end of a study's page."""

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from analysis.base.quantities import listing, quantity, whole
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.counters import counter_table
from analysis.site.pages.html import NO_HTML, code, element, joined, prose, table
from analysis.site.pages.ledger import claims
from analysis.site.pages.page import MACROS, Page, macro, root_from
from analysis.site.pages.tables import metric_rows, missing, published
from analysis.study import Study, Variant
from analysis.toolchain.reports import WIDTHS, kernel_name

LANGUAGES: Final = {".cu": "cuda", ".h": "cuda", ".cpp": "cpp", ".py": "python"}
MEASURE: Final = "snakemake --cores 8 -f build/measured"
"""The command that measures a study's variant again, up to their names."""
SAMPLES: Final = (
    "[Data](../data.md) lists the samples of every variant, with commit, compiler and command."
)


@macro
def evidence(
    page: Page,
    caption: str = "",
    charts: Mapping[str, str] | None = None,
) -> str:
    """The folded end of a study's page: every claim with its verdict, charts that the text does not
    show, every variant's source and figures, and missing results.

    caption: axes of the chart of all cases; without it, there is no such chart
    charts: captions by names of charts
    """
    drawn = {**(charts or {}), **({"cases": caption} if caption else {})}
    shown = [MACROS["chart"](page, name, text) for name, text in drawn.items()]
    parts = {
        "Claims and verdicts {: #claims .fold }": claims(page),
        "The printed figures beside ours {: #as-published .fold }": published(page),
        "More charts {: #charts-and-tables .fold }": "\n\n".join(shown),
        "Source, machine code and figures of each variant {: #sources .fold }": source(page),
        "Missing results {: #missing-results .fold }": missing(page.facts),
        "Samples {: .fold }": SAMPLES,
    }
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items() if text)


def source(page: Page) -> Markup:
    """Folded: the source of each variant with its difference from the step before, machine code,
    resources, counters, figures on every machine, and the command that measures it again."""
    study = page.facts.study
    for file in {file for one in study.variants for file in page.facts.further_files(one)}:
        text = highlighted(file.read_text(), LANGUAGES.get(file.suffix, "cuda"))
        page.write(_file_path(study, file), file.name, text)
    return joined("", (_folded(page, variant) for variant in study.variants))


def source_path(study: str, variant: str) -> str:
    """The page of a variant's source within the site."""
    return f"evidence/{study}/{variant}.html"


def _file_path(study: Study, file: Path) -> str:
    """The page of a file that programs of one study or several share, within the site."""
    name = file.resolve().relative_to(study.root.resolve()).as_posix()
    return f"evidence/files/{name}.html"


def _folded(page: Page, variant: Variant) -> Markup:
    facts = page.facts
    path = source_path(facts.study.name, variant.name)
    root = root_from(path)
    rows = metric_rows(facts, [variant], root)
    further = (
        element("a", code(file.name), href=root + _file_path(facts.study, file))
        for file in facts.further_files(variant)
    )
    text, command = variant.path.read_text(), f"{MEASURE}/{facts.study.name}/{variant.name}"
    sections = {
        "Figures": table({key: row[key] for key in row if key != "variant"} for row in rows),
        f"Difference from {variant.after}": highlighted(code_difference(facts.study, variant)),
        f"Source: {variant.path.name}": highlighted(text, LANGUAGES[variant.path.suffix]),
        "Further files of this program": joined(", ", further),
        "Resources": table(_resources(facts, variant)),
        "Machine code": table(_machine_code(facts, variant)),
        "Hardware counters": counter_table(facts, variant, root),
        "Measure it again": element("code", command, data_copy=""),
    }
    parts = [element("p", prose(text)) for text in _texts(facts, variant)]
    parts += [element("h2", title) + content for title, content in sections.items() if content]
    summary = joined(" ", [variant.title, code(variant.name)])
    return page.fold(path, summary, variant.title, joined("", parts), variant.name)


def _texts(facts: StudyFacts, variant: Variant) -> Iterator[str]:
    """The variant's idea, why it is faster, what study.yaml sets, and why it was skipped."""
    if variant.name in facts.unreached:
        yield f"Skipped on every machine: {facts.unreached[variant.name]}."
    yield from variant.idea.splitlines()
    for name, reason in variant.beats.items():
        yield f"Faster than `{name}`: {reason}"
    if settings := setting_difference(facts.study, variant):
        yield f"Beside the code, study.yaml sets {listing(settings)}."


def code_difference(study: Study, variant: Variant) -> str:
    """Unified diff of the variant's file against that of its `after`; empty if equal."""
    before = study.variant(variant.after) if variant.after else variant
    old, new = (one.path.read_text().splitlines() for one in (before, variant))
    names = before.path.name, variant.path.name
    return "\n".join(difflib.unified_diff(old, new, *names, n=2, lineterm=""))


def setting_difference(study: Study, variant: Variant) -> list[str]:
    """What study.yaml sets otherwise for the variant than for its `after`: flags, constants and
    options."""
    if variant.after is None:
        return []
    before = study.variant(variant.after)
    settings = {**variant.constants, **variant.options}
    earlier = {**before.constants, **before.options}
    changes = [
        f"`{name} = {value}` instead of `{earlier.get(name, 'unset')}`"
        for name, value in settings.items()
        if earlier.get(name) != value
    ]
    flags = f"flags `{' '.join(variant.flags) or 'none'}`"
    return [flags, *changes] if variant.flags != before.flags else changes


@cache  # studies share files
def highlighted(text: str, language: str = "diff") -> Markup:
    """`text` as a code block in HTML, marked as Markdown's are; nothing without text."""
    if not text:
        return NO_HTML
    block = highlight(text, get_lexer_by_name(language), HtmlFormatter(cssclass="highlight"))
    return Markup(block.replace("<pre>", '<pre tabindex="0">', 1))


def _resources(facts: StudyFacts, variant: Variant) -> Iterator[dict[str, object]]:
    """Registers and memory of the variant's kernels, by the compiler's report."""
    for kernel in facts.resources.get(variant.name, ()):
        yield {
            "kernel": code(kernel_name(kernel["kernel"])),
            "for": kernel["arch"],
            "registers a thread": str(kernel["registers"]),
            "spills": f"{kernel['spill_store_bytes'] + kernel['spill_load_bytes']} B",
            "static shared memory": f"{kernel['shared_bytes']} B",
        }


def _machine_code(facts: StudyFacts, variant: Variant) -> Iterator[dict[str, object]]:
    """Loads and stores of the kernels beside those of the variant before."""
    for name in filter(None, (variant.after, variant.name)):
        for kernel in facts.machine_code.get(name, ()):
            if reason := kernel["reason"]:
                yield {"variant": code(name), "kernel": f"could not be read: {reason}"}
                continue
            yield {
                "variant": code(name),
                "kernel": code(kernel_name(kernel["kernel"])),
                "for": kernel["arch"],
                "loads": _accesses(kernel, "load"),
                "stores": _accesses(kernel, "store"),
                "loads in flight": whole(kernel["loads_in_flight"]),
                "bytes in flight per warp": quantity(kernel["in_flight_bytes"], "B"),
            }


def _accesses(kernel: Mapping[Any, Any], what: str) -> str:
    """`1 of 8 B, 41 of 16 B`: instructions by what each lane moves."""
    counts = {width: kernel[f"{what}_{width}"] for width in WIDTHS}
    counted = [f"{count:.0f} of {width // 8} B" for width, count in counts.items() if count]
    return ", ".join(counted) or "none"
