"""The drawings of a row say what the link model counts."""

from __future__ import annotations

import pytest

from analysis.results.model.traffic import LINE_BYTES, row_traffic, traffic_of
from analysis.study.access import access_of
from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

STUDY = STUDIES["h2d_gather"]
drawings = load_python(STUDY, "drawings")


@pytest.mark.parametrize("name", drawings.STEPS)
def test_a_row_is_drawn_with_the_requests_that_the_model_counts(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = STUDY.variant(name)
    access = access_of(variant, STUDY.shown_case(variant))
    assert access is not None
    rows = range(LINE_BYTES // 16)
    reads = []
    for row in rows:
        monkeypatch.setattr(drawings, "ROW", row)
        reads.append(drawings.row_read(STUDY, name))
    traffic = traffic_of(access)
    requests = sum(len(read.requests) for read in reads) / len(rows)
    assert requests == pytest.approx(traffic.completions / access.rows)
    wire = sum(drawings._wire_bytes(drawings._packets(read)) for read in reads) / len(rows)
    assert wire == pytest.approx(traffic.wire_bytes / access.rows)
    for read in reads:
        assert sum(end - begin for begin, end in read.loads) == access.row_bytes
        assert sum(used for _, used in drawings._packets(read)) == access.row_bytes


def test_the_row_that_is_drawn_shows_a_line_asked_for_twice() -> None:
    before, after = (drawings.row_read(STUDY, name) for name in drawings.STEPS[-2:])
    assert len(before.requests) == len(after.requests) + 1
    assert (
        row_traffic(656, 656, 0, 512, 512).completions
        > row_traffic(656, 656, 0, 512, 656).completions
    )
