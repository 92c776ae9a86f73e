"""Variants bound to small cases on a machine without a GPU."""

from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from analysis.study import CaseValue, Variant
from analysis.toolchain.modules import load_python
from tests.conformance import binding
from tests.conformance.binding import Values
from tests.kernels import python_kernels as kernels
from tests.repository import STUDIES


class Emulation(NamedTuple):
    """The module of a variant in Python, values of small cases, and constants. A case leaves out
    keys that the variant's cases lack."""

    module: Callable[[Variant], Any]
    cases: list[dict[str, CaseValue]]
    constants: Mapping[str, int] = {}


def binds(kind: Callable[..., Any], name: str = "bind") -> Callable[[Variant], Any]:
    """Makes the module whose function of this name makes a `kind`."""
    return lambda variant: SimpleNamespace(**{name: kind})


PIECES = Emulation(
    binds(kernels.Pieces),
    [{"size": size, "count": count} for size, count in ((528, 7), (1, 1), (7, 9), (4096, 33))],
)
MIB = {"pool_mib": 1}

EMULATED: Mapping[str, Emulation] = {
    **dict.fromkeys(("idle_stream", "transfers"), PIECES),
    "duplex": Emulation(
        kernels.duplex, [{**case, "behind_mib": 1, "chunk_mib": 1} for case in PIECES.cases]
    ),
    "h2d_gather": Emulation(
        binds(kernels.RowsByPairs),
        [{"bs": 3, "topk": 7}, {"bs": 1, "topk": 1}, {"bs": 2, "topk": 30}],
        {"total_cpu_slots": 64, "total_gpu_slots": 64},
    ),
    "hot_set": Emulation(
        lambda variant: SimpleNamespace(bind=partial(kernels.HotSets, variant)),
        [{"requests": 2, "topk": 24, "slots": 40, "misses": 6, "layers": 2, **MIB}],
        {"largest_pool_mib": 1},
    ),
    "link_calibration": Emulation(
        binds(kernels.RowsInOrder, "Bound"),
        [
            {"bytes": 4096, "row_bytes": 48, "stride_bytes": 80, "offset_bytes": 32},
            {"bytes": 16, "row_bytes": 16, "stride_bytes": 0, "offset_bytes": 0},
        ],
        {"pool_bytes": 2**16, "largest_bytes": 2**14, "total_bytes": 480},
    ),
    "peers": Emulation(
        kernels.Transport,
        [
            {"rows": rows, "row_bytes": size, **MIB}
            for rows, size in ((40, 656), (300, 16), (100, 4096), (7, 1024))
        ],
        {"largest_mib": 1},
    ),
    "pool_gather": Emulation(
        kernels.pool_rows,
        [{"rows": rows, "pool_mib": mib} for rows, mib in ((300, 1), (1, 1), (3, 2))],
        {"largest_pool_mib": 2},
    ),
    "storage_fill": Emulation(kernels.fills, [{"side": 9}]),
    "translation": Emulation(
        kernels.Reads,
        [
            {"count": 16, "reads": 96, "row_bytes": 656, "rows": 40, **MIB},
            {"count": 256, "reads": 500, "stride_kib": 4, "row_bytes": 128, "rows": 900, **MIB},
            {"count": 3, "reads": 70, "stride_kib": 1024, "row_bytes": 4096, "rows": 200, **MIB},
        ],
        {"pool_mib": 64, "kinds_mib": 64, "largest_bytes": 2**21},
    ),
    "unpack": Emulation(
        binds(kernels.Fragments),
        [
            {"chunks": chunks, "kib": kib, "fragment": fragment, "src": src}
            for chunks, kib, fragment, src in ((2, 2, 96, 0), (3, 1, 96, 1), (1, 3, 77, 5))
        ],
        {"block_descriptors": 8},
    ),
}
"""The studies whose kernels are in tests/kernels/python_kernels.py."""

for _name in EMULATED:  # before a test replaces CUDA in all loaded modules
    load_python(STUDIES[_name], "workload")
MIN_ROWS = {
    load_python(STUDIES["peers"], "draws"): "MIN_ROWS_OF_SETS",
    load_python(STUDIES["pool_gather"], "draws"): "MIN_ROWS_OF_SETS",
    load_python(STUDIES["translation"], "workload"): "MIN_DRAWN_ROWS",
}
"""Modules that draw rows, and the constant with the minimum number of rows in all sets."""
BEYOND = {"price", "pressure", "step", "trip", "torch", "managed", "nvbandwidth", "profiled"}
"""Words in names of variants of transfers that do other things than move pieces."""
VARIANTS = [
    pytest.param(name, variant, id=f"{name}-{variant.name}")
    for name in EMULATED
    for variant in STUDIES[name].subjects
    if not (name == "transfers" and BEYOND & {*variant.name.split("_")})
    and (variant.on_gpu or name != "hot_set")
]
"""The studies and variants that can be launched in Python."""


def directions(variant: Variant) -> list[dict[str, Any]]:
    """Values with each direction of pieces that the variant's cases have."""
    found = {case.values.get("direction") for case in variant.cases} & {"h2d", "d2h"}
    return [{"direction": each} for each in sorted(map(str, found))] or [{}]


def draw_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw as few sets of rows as there may be: one row would take a million."""
    for module, name in MIN_ROWS.items():
        monkeypatch.setattr(module, name, 1)


def bound(
    study: str,
    name: str,
    values: Values | None = None,
    module: Any = None,
    *,
    small: int = 0,
    workload: Any = None,
    **more: int,
) -> Any:
    """A variant bound to a small case with these values, and with `more` constants, and to its
    kernels in Python unless there is a module. The operation keeps it as `module`."""
    variant, of = STUDIES[study].variant(name), EMULATED[study]
    known = variant.cases[0].values
    case = {key: value for key, value in of.cases[small].items() if key in known} | {
        **(values or {})
    }
    made = module or of.module(variant)
    constants = {**of.constants, **more}
    operation = binding.bound(STUDIES[study], variant, made, case, workload, **constants)
    operation.module = made
    return operation
