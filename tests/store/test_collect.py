"""All machines' samples as one table: what is stale, and what is no result."""

from __future__ import annotations

from pathlib import Path

from analysis.store.collect import chosen, collect
from analysis.store.results import machines, variant_files
from analysis.store.samples import COLUMNS
from tests.synthetic import CALLS, STUDIES, write_machine


def test_results_of_code_that_is_gone_are_stale(tmp_path: Path) -> None:
    write_machine(tmp_path, "box", CALLS, rounds=2)
    folder = tmp_path / "box" / "calls"
    for suffix in (".csv", ".json"):
        (folder / f"kernel{suffix}").rename(folder / f"removed{suffix}")
    found = collect(tmp_path, STUDIES).samples
    # The rows still name the variant they were measured as; the file's name says whose they are.
    assert set(found[found["stale"]]["variant"]) == {"kernel"}
    assert set(found[~found["stale"]]["variant"]) == set(CALLS.variant_names) - {"kernel"}
    assert collect(tmp_path, {}).samples["stale"].all()


def test_what_is_published_or_beside_the_samples_is_no_machine_and_no_variant(
    tmp_path: Path,
) -> None:
    write_machine(tmp_path, "box", CALLS, variants=[CALLS.variant("kernel")])
    write_machine(tmp_path, "published", CALLS)
    (tmp_path / "empty").mkdir()
    (tmp_path / "box" / "calls" / "kernel.telemetry.csv").write_text("time\n")
    assert machines(tmp_path) == ["box"]
    assert [path.name for path in variant_files(tmp_path, "box")] == ["kernel.csv"]


def test_nothing_measured_is_an_empty_table_with_all_columns(tmp_path: Path) -> None:
    found = collect(tmp_path, STUDIES)
    assert list(found.samples.columns) == ["machine", *COLUMNS, "stale"]
    assert chosen(found.samples).empty
