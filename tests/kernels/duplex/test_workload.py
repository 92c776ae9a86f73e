"""Both directions at once: every byte of both transfers is checked."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case
from analysis.toolchain.modules import load_python
from tests.kernels.device import outcome
from tests.kernels.moves import drawn, fake_memory
from tests.kernels.stubbed import stubbed
from tests.repository import STUDIES
from tests.roots import make_inputs
from tests.synthetic import write_machine

DUPLEX = STUDIES["duplex"]


@pytest.fixture
def workload(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake_memory(monkeypatch)
    return load_python(DUPLEX, "workload").Workload(DUPLEX.constants, drawn())


@pytest.mark.parametrize("name", ["in_turn", "at_once"])
def test_the_bytes_of_both_directions_arrive(workload: Any, name: str) -> None:
    for size, count in ((1, 1), (7, 9), (4096, 33)):
        workload.prepare(Case({"size": size, "count": count}, 2 * size * count, "default"))
        operation = workload.bind(DUPLEX.variant(name), stubbed(DUPLEX, name))
        for _ in range(2):
            assert outcome(operation) is None
        for target in operation.targets:
            target.poison()
            assert operation.check() is not None
            operation.launch(0)
        assert operation.own_samples(0, 1) == {}


def test_pieces_are_in_no_order_but_in_the_same_on_both_sides(workload: Any) -> None:
    workload.prepare(Case({"size": 64, "count": 500}, 64000, "default"))
    assert workload.on_host is workload.on_device
    offsets = workload.on_host.offsets.tolist()
    assert offsets != sorted(offsets) == list(range(0, 64 * 500, 64))


def test_a_variant_needs_both_transfers() -> None:
    with pytest.raises(ValueError, match="landing: expected pieces to the device"):
        stubbed(DUPLEX, "at_once").bind(16, 16, size=8, pitch=8)


def test_experiments_are_shown_by_machine_and_thread_blocks(tmp_path: Any) -> None:
    write_machine(tmp_path / "results", "box", DUPLEX, grid="default")
    facts = StudyFacts(make_inputs(tmp_path, {"duplex": DUPLEX}), DUPLEX)
    summary = facts.inputs.tables["summary"]
    by_all, by_four = [case.id for case in DUPLEX.variant("neighbours").cases][:2]
    made = [
        {"case": by_all, "metric": "gather_kept_by_out", "by_run": "0.2|0.3"},
        {"case": by_all, "metric": "read_latency_by_gather", "by_run": "8e-06|6e-06"},
        {"case": by_four, "metric": "gather_kept_by_out", "by_run": "0.5|0.6"},
    ]
    like = summary.iloc[0].to_dict() | {"variant": "neighbours", "runs": 2}
    others = summary[summary["variant"] != "neighbours"]
    changed = pd.concat([others, pd.DataFrame([like | one for one in made])], ignore_index=True)
    facts = StudyFacts(facts.inputs.with_tables(summary=changed), DUPLEX)
    table = load_python(DUPLEX, "page_tables").TABLES["by_blocks"](facts)
    assert table.rows == [
        ["box", "no limit", "", "0.250", "", "", "", "", "7.000 µs", "", ""],
        ["box", "4", "", "0.550", *[""] * 7],
    ]
