"""How the rows of a request come from a large pool: the question of this study."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from analysis.api.answers import Axis, Choice, Question, Rule, Way
from analysis.api.study import CaseValue

MOST_CORES: Final = "7/8 of the cores"
ROW_BYTES: Final = 656
MIN_DISTINCT: Final = 0.95
"""Minimum share of different rows in a launch for the rate of a way that fetches each row once: an
asker's rows may all differ."""
LAYOUTS: Final = {
    "scattered": "scattered",
    "pages_4": "four together",
    "pages_16": "16 together",
    "pages_64": "64 together",
}
WAYS: Final = {
    "loads_first": Way("a kernel that reads a row per warp", "all SMs"),
    "streaming": Way("such a kernel with streaming hints", "all SMs"),
    "sorted": Way("a kernel on rows sorted by their place", "all SMs"),
    "fetched_once": Way("a kernel on fully sorted rows, each fetched once", "all SMs"),
    "packed_by_cpu": Way("CPU threads that pack for the copy engine", MOST_CORES),
    "packed_on_request": Way(
        "CPU threads that pack on request of a kernel", f"{MOST_CORES}, all SMs"
    ),
    "both_engines": Way(
        "a kernel for a share, CPU threads and the copy engine for the rest",
        f"{MOST_CORES}, all SMs",
    ),
    "both_on_request": Way(
        "a kernel for a share, CPU threads on its request for the rest", f"{MOST_CORES}, all SMs"
    ),
    "sglang_pages": Way("sglang's page_unified", "2 SMs", is_shipped=True),
    "sglang_pages_32": Way("sglang's page_unified with 32 blocks", "32 SMs", is_shipped=True),
    "sglang_tma": Way("sglang's copy by TMA", "4 SMs", is_shipped=True),
    "sglang_transfer": Way("sglang-kernel's transfer_kv_per_layer_mla", "2 SMs", is_shipped=True),
    "sglang_transfer_32": Way(
        "sglang-kernel's transfer_kv_per_layer_mla with 32 blocks", "32 SMs", is_shipped=True
    ),
    "vllm_swap": Way("vLLM's kernel for swapped blocks", "12 SMs", is_shipped=True),
    "vllm_swap_128": Way(
        "vLLM's kernel for swapped blocks with 128 programs", "128 SMs", is_shipped=True
    ),
    "vllm_swap_batch": Way("vLLM's swap_blocks_batch", is_shipped=True),
}
"""The simplest first: kernels, then what needs CPU threads as well; shipped operators last."""


def places(variant: str, case: Mapping[str, CaseValue]) -> Iterator[Mapping[str, Any]]:
    """The question of a case: its rows, the pool in bytes, and where in the pool rows lie."""
    if case.keys() == {"rows", "pool_mib", "layout"} and case["layout"] in LAYOUTS:
        rows, pool = int(case["rows"]), int(case["pool_mib"]) * 2**20
        if variant != "fetched_once" or _distinct_share(rows, pool) >= MIN_DISTINCT:
            yield {"rows": rows, "pool": pool, "layout": case["layout"]}


def _distinct_share(rows: int, pool_bytes: int) -> float:
    """Expected share of different rows if each is drawn from the whole pool."""
    drawn = rows * ROW_BYTES / pool_bytes
    return -math.expm1(-drawn) / drawn


ROWS: Final = Question(
    name="rows",
    label="rows of 656 B from a large pool",
    cell="{rows} rows from {pool}",
    axes=[
        Axis("rows", "rows of all requests", 2048),
        Axis("pool", "pool on the host", 40 * 2**30, is_bytes=True),
    ],
    choices=[Choice("layout", "rows lie", LAYOUTS, faster="pages_4")],
    ways=WAYS,
    places=places,
    link=("link_calibration", "copy_engine"),
    base="loads_first",
    rules=[
        Rule(
            "512 to 8,191 scattered rows from at least 2 GiB: a kernel for a share, CPU threads"
            " that pack the rest on its request.",
            "both_on_request",
            {"layout": ["scattered"]},
            {"rows": (512, 8191), "pool": (2**31, math.inf)},
        ),
        Rule(
            "8,192 to 65,535 scattered rows from more than 1 GiB: CPU threads that pack all rows on"
            " request.",
            "packed_on_request",
            {"layout": ["scattered"]},
            {"rows": (8192, 65_535), "pool": (2**30 + 1, math.inf)},
        ),
        Rule(
            "65,536 or more, from more than 1 GiB: a kernel, CPU threads and the copy engine.",
            "both_engines",
            {"layout": ["scattered"]},
            {"rows": (65_536, math.inf), "pool": (2**30 + 1, math.inf)},
        ),
        Rule(
            "Rows stored four together, whatever the pool: a kernel with streaming hints.",
            "streaming",
            {"layout": ["pages_4"]},
        ),
    ],
)

QUESTIONS: Final = [ROWS]
