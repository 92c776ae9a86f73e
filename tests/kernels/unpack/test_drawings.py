"""The drawing of a chunk: every fragment once, descriptors of the right size."""

from __future__ import annotations

from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

STUDY = STUDIES["unpack"]
drawings = load_python(STUDY, "drawings")


def test_a_chunk_is_drawn_whole() -> None:
    assert sorted(drawings.ARRIVAL) == list(range(len(drawings.LENGTHS)))
    assert max(drawings.LENGTHS) << 10 == STUDY.variants[0].cases[0].number("fragment")


def test_descriptors_have_the_length_that_the_source_asserts() -> None:
    source = (STUDY.folder / "operator.h").read_text()
    assert f"sizeof(Descriptor) == {drawings.DESCRIPTOR_BYTES}" in source
