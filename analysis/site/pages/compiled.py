"""Compiler output of a variant: registers and spills, loads and stores."""

from __future__ import annotations

from collections import Counter

from markupsafe import Markup

from analysis.base.quantities import listing, quantity, whole
from analysis.site.facts.captures import kernel_name
from analysis.site.facts.rows import KernelResources
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import NO_HTML, code, joined, paragraph, table
from analysis.study import Variant


def compiled(facts: StudyFacts, variant: Variant) -> Markup:
    """Registers, memory, loads and stores of the variant's kernels; HTML."""
    return _resources(facts, variant) + _machine_code(facts, variant)


def _resources(facts: StudyFacts, variant: Variant) -> Markup:
    """Registers and memory of the kernels, grouped by equal values."""
    kernels = facts.resources(variant.name)
    names: dict[str, list[Markup]] = {}  # of kernels, by what they take
    for kernel in kernels:
        names.setdefault(_taken(kernel), []).append(code(kernel_name(kernel.kernel)))
    if not names:
        return NO_HTML
    if len(names) <= len({kernel.arch for kernel in kernels}):
        return paragraph(f"Compiled: {'; '.join(names)}.")
    by_kernel = [
        Markup("{} with {}").format(Markup(listing(found)), taken) for taken, found in names.items()
    ]
    return paragraph("Compiled: ", joined("; ", by_kernel), ".")


def _taken(kernel: KernelResources) -> str:
    spills = kernel.spill_store_bytes + kernel.spill_load_bytes
    words = [
        f"{kernel.registers} registers per thread on {kernel.arch}",
        f"{spills} B of spills" if spills else "no spills",
    ]
    if kernel.shared_bytes:
        words.append(f"{kernel.shared_bytes} B of static shared memory")
    return ", ".join(words)


def _machine_code(facts: StudyFacts, variant: Variant) -> Markup:
    """Loads and stores of the kernels beside those of the variant before."""
    built = facts.machine_code(variant.name)
    if built is None:
        return NO_HTML
    if built.reason:
        return paragraph(f"The machine code could not be read: {built.reason}.")
    has_several = len({kernel.kernel for kernel in built.kernels}) > 1
    rows = []
    for name in filter(None, (variant.after, variant.name)):
        compared = facts.machine_code(name)
        for kernel in compared.kernels if compared else []:
            rows.append(
                [
                    code(name),
                    *([kernel_name(kernel.kernel)] if has_several else []),
                    kernel.arch,
                    *(_accesses(widths) for widths in (kernel.loads, kernel.stores)),
                    whole(kernel.loads_in_flight),
                    quantity(kernel.in_flight_bytes, "B") if kernel.in_flight_bytes else "0 B",
                ]
            )
    columns = ["machine code of", *(["kernel"] if has_several else [])]
    columns += ["for", "loads", "stores", "loads in flight", "bytes in flight per warp"]
    return table(columns, rows, numeric=columns[-2:])


def _accesses(by_width: Counter[int]) -> str:
    """`1 of 8 B, 41 of 16 B`: instructions by what each lane moves."""
    counted = [
        f"{count} of {bits // 8} B".replace(" ", "\u00a0")
        for bits, count in sorted(by_width.items())
        if count
    ]
    return ", ".join(counted) or "none"
