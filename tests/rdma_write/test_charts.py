"""What the page of the RDMA writes draws."""

from __future__ import annotations

import pytest

from analysis import ROOT
from analysis.build.toolchain import Toolchain
from analysis.charts import _load
from analysis.results.published import load_published
from tests.rdma_write.sessions import STUDY


def test_counters_lie_where_the_page_draws_them(toolchain: Toolchain) -> None:
    charts = _load(STUDY.folder / "charts.py")
    fields = {
        name: charts.counter_fields(STUDY.variant(name).path).set_index("field")["offset"]
        for name in charts.DRAWN
    }
    assert set(fields["threads_shared_atomic"] // 64) == {0}
    array, padded = fields["sharded_array"], fields["sharded_padded"]
    assert array["posted[7]"] - array["posted[0]"] == 7 * 8
    assert array["finished_devices"] == 2 * 64
    assert len(set(padded // 64)) == len(padded) == 17


def test_the_printed_ladder_is_read_as_times_per_write() -> None:
    rows = load_published(ROOT / "results", STUDY).set_index("variant")["seconds"]
    assert rows["single_thread"] / rows["threads_pinned"] == pytest.approx(2.361 / 0.560)
    assert rows["sharded_array"] == pytest.approx(1 / 2.904e6)
