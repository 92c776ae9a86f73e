"""Cases and constants that make no sense: each is one error that names the field."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.base.errors import FieldError
from tests.conformance.emulated import bound

ROWS = {"row_bytes": 512, "offset_bytes": 0, "constants": {"total_bytes": 9 * 512}}
REFUSED: dict[str, list[tuple[dict[str, Any], str]]] = {
    "h2d_gather v3_loads_first": [
        ({"bs": 0}, "at least one row, got 0"),
        ({"draw": "sorted"}, "draw: expected permutation or with_replacement, got 'sorted'"),
        ({"bs": 5, "topk": 13, "draw": "permutation"}, "^total_cpu_slots: expected at least 65"),
        ({"constants": {"token_bytes": 100}}, r"^constants\.token_bytes: .* 16, got 100"),
    ],
    "link_calibration sm_rows": [
        ({"row_bytes": 100}, "row_bytes: expected a multiple of 16, got 100"),
        ({**ROWS, "stride_bytes": 256}, "rows in slots of 256 B, got 9"),
        ({**ROWS, "stride_bytes": 8192}, "at most 8 rows in slots of 8192 B, got 9"),
    ],
    "peers pulled": [
        ({"rows": 1599}, "rows: expected"),
        *(({"row_bytes": size}, "row_bytes: expected a multiple") for size in (0, 24, 4112)),
    ],
    "pool_gather loads_first": [
        ({"rows": 1599, "layout": "distinct"}, "1599"),
        *(({"layout": layout}, "case") for layout in ("contiguous", "pages_2000")),
        *(({"layout": layout}, "layout: expected") for layout in ("pages_0", "sorted")),
        *(({"pool_mib": mib}, f"pool_mib: expected .*, got {mib}") for mib in (0, 5)),
        ({"constants": {"token_bytes": 650}}, r"^constants\.token_bytes: expected"),
        ({"constants": {"slot_bytes": 672}}, r"^constants\.slot_bytes: expected"),
    ],
    "transfers pinned_list_loop": [
        *(({name: 0}, name) for name in ("size", "count")),
        ({"host": "round"}, "layout"),
        ({"direction": "up"}, "^direction: expected .*round_trip"),
    ],
    "translation independent_lines": [
        *(({"count": count}, r"count: expected 1 to 2\^31") for count in (0, 2**31)),
        ({"count": 2**24}, r"fewer than 2\^32 lines"),
        ({"order": "sideways"}, "order: expected one of .*'sideways'"),
    ],
    "translation rows": [
        ({"row_bytes": 656, "rows": 1600}, "rows: expected at most 1598, got 1600"),
        ({"row_bytes": 4096, "rows": 513}, "at most 2097152 B"),
        ({"row_bytes": 20}, "a multiple of 16 B in each read, got 20"),
    ],
    "unpack s4_batched": [
        *(({name: 0}, f"{name}: expected at least 1") for name in ("chunks", "fragment")),
        ({"chunks": 5, "kib": 2**20, "fragment": 2**20}, "sources within 4 GiB"),
        ({"constants": {"arrival": 3}}, r"^constants\.arrival: expected 1 or 2, got 3"),
    ],
}
"""Values of a case and, under "constants", of the study of a variant; and the error."""


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("of", REFUSED)
def test_what_makes_no_sense_is_one_error(of: str) -> None:
    study, variant = of.split()
    for values, message in REFUSED[of]:
        case = {key: value for key, value in values.items() if key != "constants"}
        with pytest.raises(FieldError, match=message):
            bound(study, variant, case, **values.get("constants", {}))
