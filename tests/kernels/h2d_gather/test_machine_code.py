"""Changes of each step in the machine code."""

from __future__ import annotations

from collections import Counter

import pytest

from analysis.toolchain import sass
from tests.compiled import device_code
from tests.repository import STUDIES

GATHER = STUDIES["h2d_gather"]


@pytest.fixture(scope="module")
def built() -> dict[str, sass.KernelCode]:
    """Machine code of three steps."""
    found = {}
    for name in ("v1_vectorized", "v2_warp_per_token", "v3_loads_first"):
        code = device_code(GATHER, GATHER.variant(name))
        (found[name],) = sass.parse_sass(sass.cuobjdump(code, "-sass"))
    return found


def test_a_step_shows_in_the_machine_code(built: dict[str, sass.KernelCode]) -> None:
    vectors = GATHER.constants["token_bytes"] // 16
    assert built["v1_vectorized"].loads[128] == vectors
    assert built["v1_vectorized"].stores == Counter({128: vectors})
    assert built["v2_warp_per_token"].loads_in_flight == 1
    assert built["v3_loads_first"].loads_in_flight == 2
    assert built["v3_loads_first"].in_flight_bytes == 2 * built["v2_warp_per_token"].in_flight_bytes
