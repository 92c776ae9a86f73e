"""Which step keeps the hot set of a layer: the question of this study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from analysis.api.answers import Axis, Question, Way
from analysis.api.study import CaseValue

MOST_CORES: Final = "7/8 of the cores"
PUBLISHED_WAY: Final = "v3_block_per_request"
"""The step in the way of the published kernels. Few others are measured in cells without it."""
WAYS: Final = {
    "v0_torch": Way("PyTorch", "1 core"),
    "v1_host_lookup": Way("a look-up on the CPU, a gather by a kernel", "1 core, all SMs"),
    "v2_two_kernels": Way("a look-up kernel, then a gather kernel", "all SMs"),
    PUBLISHED_WAY: Way("one kernel, a block per request", "1 SM a request"),
    "v4_rows_in_flight": Way(
        "a block per request, four misses in flight per warp", "1 SM a request"
    ),
    "v5_several_blocks": Way("one kernel, a cluster of blocks per request", "2 or 8 SMs a request"),
    "packed_on_request": Way("CPU threads that pack on request of a kernel", MOST_CORES),
    "both_on_request": Way("SMs and CPU threads that share the misses", MOST_CORES),
    "met_on_request": Way("SMs and CPU threads that meet", MOST_CORES),
    "lookup_ready": Way("a look-up that is ready before the ids arrive", "a cluster a request"),
    "table_lru": Way("a block per request with a table of slots", "1 SM a request"),
    "table_spread": Way("a table of slots and several blocks that fetch", "up to 25 SMs a request"),
    "sglang_hisparse": Way("sglang's hisparse", "1 SM a request", is_shipped=True),
    "vllm_hisparse": Way("vLLM's hisparse", is_shipped=True),
    "vllm_hisparse_roomy": Way("vLLM's hisparse with 4,097 places", is_shipped=True),
}
"""Exact LRU, in the order of the study's steps; shipped operators last."""
FIXED: Final[Mapping[str, CaseValue]] = {"topk": 2048, "slots": 4096, "layout": "scattered"}


def places(variant: str, case: Mapping[str, CaseValue]) -> Iterator[Mapping[str, Any]]:
    """The question of a case: requests, the pool in bytes, and the misses of all requests."""
    if case.keys() == {"requests", "misses", "pool_mib", *FIXED} and FIXED.items() <= case.items():
        pool = int(case["pool_mib"]) * 2**20
        yield {"requests": case["requests"], "pool": pool, "misses": case["misses"]}


HOT_SET: Final = Question(
    name="hot_set",
    label="the hot set of a layer",
    cell="{misses} misses of {requests} requests from {pool}",
    axes=[
        Axis("requests", "requests of a step", 1),
        Axis("pool", "pool on the host", 40 * 2**30, is_bytes=True),
        Axis("misses", "misses of all requests", 410),
    ],
    ways=WAYS,
    places=places,
    link=("link_calibration", "copy_engine"),
    base=PUBLISHED_WAY,
)

QUESTIONS: Final = [HOT_SET]
