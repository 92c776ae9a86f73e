"""The link model: bytes of rows worked out by hand, limits, fitting, and what is left out of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.charts import study_charts
from analysis.errors import FieldError
from analysis.facts.inputs import Inputs
from analysis.facts.study_facts import StudyFacts
from analysis.model.access import Access, access_of
from analysis.model.fit import FEWEST_CASES, NAMES, Fit, fit, held_back
from analysis.model.terms import (
    TERMS,
    WORK,
    Parameters,
    predicted_seconds,
    term_seconds,
    work_of,
)
from analysis.model.traffic import (
    LOAD_BYTES,
    Traffic,
    line_requests,
    row_traffic,
    traffic_of,
    warp_requests,
)
from analysis.report.model import counter_table, judgement, model_table, parameter_table
from analysis.store.counters import COLUMNS as CAPTURED_COLUMNS
from analysis.study import Case, Variant, discover
from analysis.tables.model import MODEL_COLUMNS, PARAMETER_COLUMNS
from tests.report.roots import STUDY, build, make_inputs, make_root, text_of
from tests.synthetic import plausible, write_machine

CALIBRATION = "link_calibration"

SMS = 132
"""As tests.synthetic describes its machines."""
TRUE = Parameters(
    link_rate=59e9,
    half_line=6.0,
    request_rate=0.82e9,
    sm_request_rate=37e6,
    latency=1.9e-6,
    start_up=4e-6,
    index_latency=0.6e-6,
    copy_engine_start_up=2e-6,
)
MIB = 2**20
TURNS, COPY_ENGINE = WORK.index("turns"), WORK.index("copy engine")


def rows(row_bytes: int, stride_bytes: int = 0, **more: int) -> Access:
    """16 MiB read by warps in rows, one row in flight."""
    sizes = {"stride_bytes": stride_bytes or row_bytes, "in_flight_bytes": row_bytes}
    payload = 16 * MIB // row_bytes * row_bytes
    return Access("warp_rows", payload, row_bytes, **{**sizes, **more})


def true_seconds(variant: Variant, case: Case, metric: str) -> float:
    """What the model says of every variant with a link."""
    access = access_of(variant, case)
    if access is None:
        return plausible(variant, case, metric)
    return float(predicted_seconds(np.array([work_of(access, SMS)]), TRUE.values())[0])


def made_up(folder: Path, seconds: Callable[[Variant, Case, str], float] = true_seconds) -> Path:
    """A repository whose machine `box` has all of every study with a link, with 1 % of noise."""
    root = make_root(folder)
    for name in (STUDY, CALIBRATION):
        study = discover(root)[name]
        write_machine(root / "results", "box", study, seconds=seconds, rounds=4)
    return root


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_up(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def inputs(root: Path) -> Inputs:
    captured = [
        ("v3_loads_first", "pcie__read_bytes.sum", "byte", 195e6),
        (
            "v3_loads_first",
            "lts__t_requests_srcunit_tex_aperture_sysmem_lookup_miss.sum",
            "",
            1.6e6,
        ),
        ("v3_loads_first", "sm__cycles_active.avg", "cycle", 5.0),
    ]
    headline = discover(root)[STUDY].headline
    for variant, *found in captured:
        file = root / "results" / "box" / STUDY / f"{variant}.ncu.csv"
        row = pd.DataFrame([[headline, "gather_rows", *found]], columns=CAPTURED_COLUMNS)
        row.to_csv(file, mode="a", header=not file.exists(), index=False)
    return make_inputs(root)


def sizes(start: int, length: int) -> list[int]:
    return [request.data_bytes for request in line_requests(start, length)]


def test_requests_are_the_lines_touched_with_their_whole_sectors() -> None:
    assert sizes(0, 128) == [128]
    assert sizes(0, 1) == [32]
    assert sizes(31, 2) == [64]
    assert sizes(96, 64) == [32, 32]
    assert sizes(16, 128) == [128, 32]
    assert sizes(0, 640) == [128] * 5


@pytest.mark.parametrize("offset", range(0, 128, 16))
def test_656_bytes_are_six_lines_and_21_sectors_at_every_16_byte_offset(offset: int) -> None:
    requests = sizes(offset, 656)
    assert len(requests) == 6
    assert sum(requests) == 672


def test_a_line_that_two_loads_share_is_asked_for_twice_unless_both_are_in_flight() -> None:
    # The second load begins at 512 + offset. It asks for the whole line where it begins in the
    # line's first sector, so that nothing is left for the first load.
    requests = [warp_requests(offset, 656, LOAD_BYTES) for offset in range(0, 128, 16)]
    assert [len(asked) for asked in requests] == [6, 6, 7, 7, 7, 7, 7, 7]
    assert all(sum(request.data_bytes for request in asked) == 672 for asked in requests)
    assert all(len(warp_requests(offset, 656, 656)) == 6 for offset in range(0, 128, 16))
    one_by_one = rows(656, in_flight_bytes=512)
    assert traffic_of(one_by_one).completions / one_by_one.rows == 6.75
    assert traffic_of(rows(656)).completions / rows(656).rows == 6


def test_half_lines_of_the_host() -> None:
    assert sum(request.half_lines for request in line_requests(0, 64)) == 0
    assert sum(request.half_lines for request in line_requests(32, 64)) == 2
    assert sum(request.half_lines for request in line_requests(0, 96)) == 1
    # The loads meet in the line at 512 + 32: halves there are whole, unless one waits for another.
    assert row_traffic(640, 1024, 32, LOAD_BYTES, 640).half_lines == 2
    assert row_traffic(640, 1024, 32, LOAD_BYTES, 512).half_lines == 4


def test_rows_average_over_the_starts_they_have() -> None:
    # Packed rows of 48 bytes start at 0, 48, 96, 16, 64, 112, 32, 80 within a line.
    sectors = [2, 2, 2, 1 + 1, 2, 2, 2, 2]
    row = row_traffic(48, 48, 0, LOAD_BYTES, 48)
    assert row.sectors == sum(sectors) / 8
    assert row.completions == (1 + 1 + 2 + 1 + 1 + 2 + 1 + 1) / 8
    assert row_traffic(48, 128, 0, LOAD_BYTES, 48) == Traffic(1, 64)
    assert row_traffic(48, 128, 96, LOAD_BYTES, 48).completions == 2


@pytest.mark.parametrize(
    ("access", "payload_share", "counted_share"),
    [
        (rows(640), 128 / 148, 140 / 128),
        (rows(656), 656 / (672 + 6 * 20), (672 + 6 * 12) / 656),
        (Access("contiguous", MIB, in_flight_bytes=2048), 128 / 148, 140 / 128),
        (Access("copy_engine", MIB), 256 / 276, 268 / 256),
    ],
)
def test_shares_of_the_wire(access: Access, payload_share: float, counted_share: float) -> None:
    traffic = traffic_of(access)
    assert access.payload_bytes / traffic.wire_bytes == pytest.approx(payload_share)
    assert traffic.counted_bytes / access.payload_bytes == pytest.approx(counted_share)


@pytest.mark.parametrize(
    ("access", "gigabytes_per_second"),
    [
        (Access("contiguous", 172 * 10**6, in_flight_bytes=2048), 51.0),
        (Access("copy_engine", 172 * 10**6), 54.8),
        (rows(640), 51.0),
        (rows(656), 48.5),
    ],
)
def test_link_term_gives_the_ceilings_that_were_measured(
    access: Access, gigabytes_per_second: float
) -> None:
    seconds = term_seconds(np.array([work_of(access, SMS)]), TRUE.values())[0, 0]
    assert access.payload_bytes / seconds / 1e9 == pytest.approx(gigabytes_per_second, rel=0.003)


def test_a_thread_that_reads_a_row_alone_merges_nothing() -> None:
    access = Access("thread_rows", 656 * 1000, 656, 656, 0, 16, 512)
    assert traffic_of(access).completions == 41 * 1000
    assert traffic_of(replace(access, access_bytes=1)).data_bytes == 656 * 1000 * 32


def test_few_warps_are_bound_by_what_they_have_in_flight() -> None:
    """Little's law: 64 warps of 512 bytes in a turn of 1.9 µs."""
    work = np.array(
        [work_of(rows(512, warps=64, in_flight_bytes=size), SMS) for size in (512, 1024)]
    )
    one, two = term_seconds(work, TRUE.values())[:, TERMS.index("in flight")]
    assert 16 * MIB / one == pytest.approx(64 * 512 / TRUE.latency)
    assert one == pytest.approx(2 * two)
    # No more warps than the chip has room for, none without a row, one turn at least.
    assert work_of(rows(512), SMS)[TURNS] == pytest.approx(32768 / (SMS * 64))
    assert work_of(rows(512, warps=10**6), SMS)[TURNS] == pytest.approx(32768 / (SMS * 64))
    assert work_of(replace(rows(512, warps=64), payload_bytes=512), SMS)[TURNS] == 1


def test_few_blocks_are_bound_by_what_a_multiprocessor_sends() -> None:
    """64 warps are 8 blocks, on as many multiprocessors, each with an eighth of the lines."""
    work = np.array([work_of(rows(512, warps=64, in_flight_bytes=2048), SMS)])
    seconds = term_seconds(work, TRUE.values())[0, TERMS.index("SM request rate")]
    assert seconds == pytest.approx(16 * MIB / 128 / 8 / TRUE.sm_request_rate)


def test_rows_start_later_than_contiguous_bytes_by_the_look_up_of_the_first() -> None:
    """4 KiB, whole lines either way, so that all but the start is the same."""
    start_up = TERMS.index("start-up")
    by_rows = replace(rows(512), payload_bytes=4096)
    in_order = Access("contiguous", 4096, in_flight_bytes=512)
    work = np.array([work_of(by_rows, SMS), work_of(in_order, SMS)])
    indexed, contiguous = term_seconds(work, TRUE.values())
    assert indexed[:start_up] == pytest.approx(contiguous[:start_up])
    assert indexed[start_up] == pytest.approx(4.6e-6)
    assert contiguous[start_up] == pytest.approx(4e-6)


def test_every_link_of_every_study_can_be_worked_out() -> None:
    for study in discover().values():
        for variant in study.variants:
            for case in variant.cases:
                access = access_of(variant, case)
                assert (access is None) == (variant.link is None)
                assert access is None or traffic_of(access).data_bytes >= case.payload_bytes


@pytest.mark.parametrize(
    ("link", "named"),
    [
        ({"reads": "warp_rows"}, "row_bytes"),
        ({"reads": "copy_engine", "warps": 1}, "warps"),
        ({"reads": "warp_rows", "row_bytes": "no_such_key"}, "no_such_key"),
        ({"reads": "warp_rows", "row_bytes": 0}, "row_bytes"),
    ],
)
def test_faults_of_a_link_are_named(link: dict[str, str | int], named: str) -> None:
    variant = discover()[STUDY].variants[0]
    with pytest.raises(FieldError, match=named):
        access_of(replace(variant, link=link), variant.cases[0])


def calibration_work() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Work of every calibration case, their times with 1 % of noise, and that."""
    study = discover()[CALIBRATION]
    cells = [(variant, case) for variant in study.variants for case in variant.cases]
    accesses = [access_of(*cell) for cell in cells]
    work = np.array([work_of(access, SMS) for access in accesses if access])
    errors = np.full(len(work), 0.01)
    noise = np.exp(np.random.default_rng(3).normal(0, errors))
    return work, predicted_seconds(work, TRUE.values()) * noise, errors


def test_parameters_are_recovered_from_noisy_times() -> None:
    found = fit(*calibration_work())
    assert isinstance(found, Fit)
    for name in ("link_rate", "request_rate", "sm_request_rate", "latency"):
        true, value = getattr(TRUE, name), getattr(found.parameters, name)
        assert value == pytest.approx(true, rel=0.02), name
        assert getattr(found.low, name) <= value <= getattr(found.high, name)
    assert found.parameters.half_line == pytest.approx(TRUE.half_line, abs=2)
    assert found.parameters.start_up == pytest.approx(TRUE.start_up, abs=3e-6)
    assert found.parameters.index_latency == pytest.approx(TRUE.index_latency, abs=0.2e-6)


def test_slow_outliers_do_not_move_the_fit() -> None:
    work, seconds, errors = calibration_work()
    seconds[::15] *= 1.4
    found = fit(work, seconds, errors)
    assert found is not None
    assert found.parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.02)


def test_a_case_counts_less_the_less_sure_it_is() -> None:
    work, seconds, errors = calibration_work()
    contiguous = (work[:, COPY_ENGINE] == 0).nonzero()[0][-1]
    seconds[contiguous] *= 1.2
    errors[contiguous] = 0.5
    found = fit(work, seconds, errors)
    assert found is not None
    assert found.parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.02)


def test_what_nothing_shows_is_unknown_or_only_a_bound() -> None:
    work, seconds, errors = calibration_work()
    terms = term_seconds(work, TRUE.values())[:, :-1]
    link_bound = (terms.argmax(axis=1) == 0) & (work[:, COPY_ENGINE] == 0)
    found = fit(work[link_bound], seconds[link_bound], errors[link_bound])
    assert found is not None
    assert found.parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.02)
    assert math.isnan(found.parameters.copy_engine_start_up)
    assert found.parameters.latency >= TRUE.latency * 0.9
    assert math.isnan(found.low.latency)
    assert fit(work[:5], seconds[:5], errors[:5]) is None
    whole = work[:, WORK.index("wire")] == 148 * work[:, WORK.index("requests")]
    assert whole.sum() > FEWEST_CASES and (~whole).sum() > FEWEST_CASES
    assert fit(work[whole], seconds[whole], errors[whole]) is None
    assert fit(work[~whole], seconds[~whole], errors[~whole]) is None


def test_a_third_is_held_back_from_every_value_of_every_key() -> None:
    assert held_back(9).tolist() == [i in (2, 4, 6) for i in range(9)]
    variant = discover()[CALIBRATION].variant("sm_rows")
    occupancy = [
        case for case, out in zip(variant.cases, held_back(len(variant.cases)), strict=True) if out
    ]
    seen = {case["in_flight"] for case in occupancy if case["blocks"] != 0}
    assert seen == {1, 2, 4}


def test_tables_have_the_columns_others_read(inputs: Inputs, root: Path) -> None:
    model = pd.read_csv(root / "build" / "model.csv")
    parameters = pd.read_csv(root / "build" / "model_parameters.csv")
    assert list(model) == MODEL_COLUMNS
    assert list(parameters) == PARAMETER_COLUMNS
    assert list(parameters["parameter"]) == list(NAMES)
    assert set(model["binding"]) <= set(TERMS)
    assert (model["margin"] >= 1).all()
    residual = model["measured"] / model["predicted"] - 1
    assert model["residual"].to_numpy() == pytest.approx(residual.to_numpy(), abs=1e-6)
    predictable = {v.name for v in inputs.studies[STUDY].variants if v.link}
    assert set(model.loc[model["study"] == STUDY, "variant"]) == predictable
    assert model.loc[model["study"] == STUDY, "held_back"].sum() == 0
    assert model["residual"].abs().max() < 0.05


def test_held_back_rows_do_not_take_part_in_the_fit(inputs: Inputs, tmp_path: Path) -> None:
    calibration = inputs.studies[CALIBRATION]
    out = {
        (variant.name, case.id)
        for variant in calibration.variants
        for case, kept in zip(variant.cases, held_back(len(variant.cases)), strict=True)
        if kept
    }

    def broken(variant: Variant, case: Case, metric: str) -> float:
        return true_seconds(variant, case, metric) * (1 + ((variant.name, case.id) in out))

    other = make_inputs(made_up(tmp_path, broken))
    assert other.model_parameters.equals(inputs.model_parameters)
    own = other.model[other.model["study"] == CALIBRATION]
    assert own.loc[own["held_back"] == 1, "residual"].min() > 0.9


def test_without_calibration_there_is_no_prediction_and_pages_say_so(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write_machine(root / "results", "box", discover(root)[STUDY], seconds=true_seconds)
    found = make_inputs(root)
    assert found.model.empty and found.model_parameters.empty and found.model_counters.empty
    facts = StudyFacts(found, found.studies[STUDY])
    assert "model" not in study_charts(facts)
    assert "No machine has been calibrated" in model_table(facts)
    assert "No machine has been calibrated" in parameter_table(found)
    assert "No counters" in counter_table(facts)


def test_the_worst_point_is_told_of_the_judged_alone(tmp_path: Path) -> None:
    found = make_inputs(made_up(tmp_path))
    page = judgement(StudyFacts(found, found.studies[STUDY]))
    assert ">worst judged</th>" in page and ">worst</th>" not in page


def test_stale_results_are_not_compared(tmp_path: Path) -> None:
    root = made_up(tmp_path)
    source = root / "kernels" / STUDY / "v3_loads_first.cu"
    source.write_text(source.read_text() + "int changed;\n")
    model = make_inputs(root).model
    assert "v3_loads_first" not in set(model["variant"])
    assert "v2_warp_per_token" in set(model["variant"])


def test_counters_are_compared_in_bytes(inputs: Inputs) -> None:
    table = inputs.model_counters.set_index("metric")
    assert len(table) == 2
    bytes_read = table.loc["pcie__read_bytes.sum"]
    assert bytes_read["predicted"] == pytest.approx(262144 * (672 + 6 * 12))
    assert bytes_read["counted"] == pytest.approx(195e6)
    assert bytes_read["residual"] == pytest.approx(195e6 / (262144 * 744) - 1, rel=1e-4)
    text = counter_table(StudyFacts(inputs, inputs.studies[STUDY]))
    assert "v3_loads_first" in text


def test_a_malformed_capture_leaves_its_machine_out(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write_machine(root / "results", "box", discover(root)[STUDY])
    file = root / "results" / "box" / STUDY / "v3_loads_first.ncu.csv"
    file.write_text("case,kernel,metric,value\n")
    inputs = make_inputs(root)
    assert "v3_loads_first.ncu.csv: line 1: expected the columns" in inputs.refused["box"]
    assert inputs.summary.empty


def test_pages_show_the_model(inputs: Inputs, root: Path) -> None:
    site = build(root)
    gather = text_of(site / "studies" / STUDY / "index.html")
    assert "times the next term" in gather and "counted against predicted" in gather
    calibration = text_of(site / "studies" / CALIBRATION / "index.html")
    assert "effective rate of the link" in calibration
    assert "within 3 %" in calibration
    for name in (STUDY, CALIBRATION):
        assert "model" in study_charts(StudyFacts(inputs, inputs.studies[name]))
