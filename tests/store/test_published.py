"""What others printed, in SI units."""

from __future__ import annotations

import math

import pytest

from analysis.errors import FieldError
from analysis.store.published import best_statement, load_published, to_seconds
from tests import synthetic
from tests.synthetic import COPY


def test_published_units_become_seconds() -> None:
    payload = 2**30
    assert to_seconds(81.3025, "ms", 0, "here") == pytest.approx(0.0813025)
    assert to_seconds(2.0, "GiB/s", payload, "here") == pytest.approx(0.5)
    assert to_seconds(1.0, "GB/s", 10**9, "here") == pytest.approx(1.0)
    assert to_seconds(8.0, "Gbps", 10**9, "here") == pytest.approx(1.0)
    assert math.isnan(to_seconds(2.0, "GiB/s", 0, "here"))
    with pytest.raises(FieldError, match=r"unit_meant: expected one of .* got 'furlong'"):
        to_seconds(1.0, "furlong", 0, "unit_meant")


def test_published_time_and_rate_say_the_same() -> None:
    published = load_published(synthetic.ROOT / "results", COPY)
    for _, both in published.groupby("variant"):
        seconds = both["seconds"].to_numpy()
        assert seconds.max() / seconds.min() < 1.01
    best = best_statement(published)
    assert set(best["unit_meant"]) == {"ms"}
    assert (best["rate"] * best["seconds"] * 1e9).to_numpy() == pytest.approx(
        best["payload_bytes"].to_numpy(dtype=float)
    )
