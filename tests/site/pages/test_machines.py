"""The table of freshness: which cases of a machine are stale, in which grid."""

from __future__ import annotations

import re
from pathlib import Path

from analysis.site.pages.machines import freshness
from analysis.study import Study, discover
from tests.roots import make_inputs, make_root
from tests.synthetic import RUN, add_run, provenance_of, samples_of

LATER = RUN.replace("2026-01", "2026-02")


def study_with_a_full_grid(root: Path) -> Study:
    """The study `copy`, whose variant `bytewise` has one more case in the full grid."""
    path = root / "kernels" / "copy" / "study.yaml"
    more = "  more:\n    grid: full\n    batch: [1]\n    rows: [4096]\n    draw: [once]\n"
    more += "    payload_bytes: batch * rows * row_bytes\n"
    text = path.read_text().replace("  few:\n", f"{more}  few:\n", 1)
    path.write_text(text.replace("    cases: [grid]\n", "    cases: [grid, more]\n", 1))
    return discover(root)["copy"]


def stale_columns(root: Path) -> dict[str, str]:
    """Text of the columns about stale cases, by heading, of the only machine."""
    text = freshness(make_inputs(root))
    heads = re.findall(r"<th[^>]*>(.*?)</th>", text)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", text)
    columns = dict(zip(heads, cells, strict=True))
    return {head: value for head, value in columns.items() if "stale" in head}


def test_stale_cases_of_the_full_grid_have_a_column(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = study_with_a_full_grid(root)
    variant = study.variant("bytewise")
    results = root / "results"
    older = provenance_of(study, variant) | {"source_sha256": "0" * 64}
    add_run(results, "box", study.name, variant.name, samples_of(study, variant, rounds=2), older)
    assert stale_columns(root) == {"stale cases": "16", "stale cases of the full grid": "1"}

    samples = samples_of(study, variant, rounds=2, run=LATER, grid="default")
    newer = provenance_of(study, variant, run=LATER)
    add_run(results, "box", study.name, variant.name, samples, newer)
    assert stale_columns(root) == {"stale cases": "0", "stale cases of the full grid": "1"}
