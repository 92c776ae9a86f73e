"""The drawing of the counters has their layout from the sources."""

from __future__ import annotations

import re

from analysis.results.model.traffic import HOST_LINE_BYTES
from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

STUDY = STUDIES["counters"]
drawings = load_python(STUDY, "drawings")


def test_counters_are_drawn_as_the_sources_place_them() -> None:
    assert list(drawings.LAYOUTS) == [variant.name for variant in STUDY.with_role("step")]
    for name, layout in drawings.LAYOUTS.items():
        source = STUDY.variant(name).path.read_text()
        padded = re.search(r"struct alignas\((\d+)\) Padded", source)
        each = int(padded[1]) if padded else drawings.COUNTER_BYTES
        assert layout.stride == (each if "std::array<" in source else 0)
        assert padded is None or each == HOST_LINE_BYTES
        assert layout.held == ("kPublishEvery" in source)
