"""Allocators with streams that lag, end and return, with captures, and with a refusing driver."""

from __future__ import annotations

import re

import pytest

from tests.kernels.phases.native import HERE, native, ran

LISTED = re.compile(r"^ +SITUATION\((\w+)\),", re.MULTILINE)
SITUATIONS = LISTED.findall((HERE / "hostile.cpp").read_text())

CAPTURING = "operation not permitted when stream is capturing"
STILL_READ = "got some that a stream still reads"
OF_A_GRAPH = "got some of a captured graph"

FAULTS = {
    "p4_final": {
        "a_slow_stream_holds_only_its_own": "got 126 MiB",
        "a_miss_asks_each_stream_once": "got 2000 for four",
        "a_stream_that_lasts_has_fewer_events_than_frees": "got 320 for 320",
        "a_stream_that_has_ended_is_not_asked": "cudaEventRecord .* segmentation fault",
        "a_handle_that_comes_back_is_another_stream": STILL_READ,
        "an_owner_that_ends_leaves_its_memory_to_be_finished": STILL_READ,
        "each_thread_has_its_own_default_stream": STILL_READ,
        "another_thread_frees_what_a_default_stream_reads": STILL_READ,
        "no_memory_needs_no_stream": "did not hand out",
        "a_refused_free_keeps_the_segment": "got 1024 MiB",
        "a_refused_free_is_no_reason_to_fail": "cudaFree: unspecified launch failure",
        "a_trim_waits": "got 64 MiB",
        "streams_that_are_gone_take_no_host_memory": r"got 16\d{3} B",
        "a_fit_is_found_as_fast_among_many": r"got \d{4} and 2\d{5}$",
        "a_free_inside_a_capture_is_seen_to_after_it": f"cudaEventQuery: {CAPTURING}",
        "a_free_of_another_stream_does_not_end_a_capture": f"cudaMalloc: {CAPTURING}",
        "a_capture_may_grow_the_heap": f"cudaMalloc: {CAPTURING}",
        "a_trim_does_not_end_a_capture": "the capture was ended by cudaFree",
        "a_temporary_of_a_graph_stays_its_own": OF_A_GRAPH,
        "graphs_of_two_pools_share_no_memory": OF_A_GRAPH,
        "graphs_of_one_pool_share_memory": f"cudaMalloc: {CAPTURING}",
    },
    "p5_dropin": {},
}
"""The situations in which each variant fails, and the error. It must pass all others."""


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("step", FAULTS)
def test_only_known_faults_are_left(step: str, situation: str) -> None:
    # The compiler counts executed blocks, so that no clock has to measure a search.
    flags = "-fsanitize-coverage=trace-pc"
    done = ran(native(f"hostile-{step}", "hostile.cpp", flags, variant=step), situation)
    expected = FAULTS[step].get(situation)
    assert done.returncode == (0 if expected is None else 1), done.stdout + done.stderr
    assert expected is None or re.search(expected, done.stdout.strip())


@pytest.mark.parametrize(
    ("step", "trace"),
    [pytest.param("p5_dropin", "off", marks=pytest.mark.long), ("p5_traced", "on")],
)
def test_observers_record_events(step: str, trace: str) -> None:
    done = ran(native(f"observers-{step}", "observers.cpp", variant=step), trace)
    assert done.returncode == 0, done.stdout + done.stderr
