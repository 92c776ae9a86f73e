"""The drawing of the counters against their layout in the sources."""

from __future__ import annotations

import re

from analysis.results.model.traffic import HOST_LINE_BYTES
from analysis.study.source import source_files
from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

STUDY = STUDIES["counters"]
drawings = load_python(STUDY, "drawings")


def test_drawn_layout_is_that_of_the_sources() -> None:
    assert list(drawings.LAYOUTS) == [variant.name for variant in STUDY.with_role("step")]
    for name, layout in drawings.LAYOUTS.items():
        files = source_files(STUDY, STUDY.variant(name))
        source = "".join(path.read_text() for path in files)
        padded = re.search(r"struct alignas\((\d+)\) Padded", source)
        each = int(padded[1]) if padded else drawings.COUNTER_BYTES
        assert layout.stride_bytes == (each if "std::array<" in source else 0)
        assert padded is None or each == HOST_LINE_BYTES
        assert layout.in_register == ("++finished;" in source)
