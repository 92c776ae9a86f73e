"""Captures: how they are read, what pages show of them, and what the machine code says."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis import ROOT
from analysis.charts import study_charts
from analysis.charts.timeline import timeline_chart, timeline_events
from analysis.errors import HotpathError
from analysis.facts.captures import kernel_name, read_counters, read_events
from analysis.facts.study_facts import StudyFacts
from analysis.modules import module_path
from analysis.profile import ncu
from analysis.profile.timeline import normalised
from analysis.report.captured import counter_tables, gaps
from analysis.report.compiled import machine_code
from analysis.report.sources import stage_sources
from analysis.source import fingerprint
from analysis.store import counters as stored_counters
from analysis.store.results import set_capture
from analysis.store.timelines import write_events
from analysis.study import Study, discover
from analysis.toolchain import sass
from analysis.toolchain.compile import compile_bindings, compile_module
from analysis.toolchain.compilers import find_toolchain
from tests.report.roots import STUDY, build, make_inputs, make_root, text_of
from tests.synthetic import write_machine

DATA = Path(__file__).parent / "data"
GATHER = discover()[STUDY]
REAL = (DATA / "ncu_h100_gather.csv").read_text()
TIMELINES = sorted(ROOT.glob("results/*/*/*.timeline.csv"))


def values(text: str) -> dict[str, dict[str, float]]:
    """Counters by variant and metric."""
    found: dict[str, dict[str, float]] = {}
    for variant, counter in ncu.parse(text, GATHER.headline):
        found.setdefault(variant, {})[counter.metric] = counter.value
    return found


def table_of(text: str) -> list[str]:
    """The lines from the header on."""
    lines = text.splitlines()
    return lines[next(i for i, line in enumerate(lines) if line.startswith('"ID"')) :]


def test_a_real_answer_of_the_profiler_is_read() -> None:
    found = values(REAL)
    assert found
    assert set(found) <= set(GATHER.variant_names)
    for counted in found.values():
        assert counted["gpu__time_duration.sum"] > 0
        assert counted["launch__registers_per_thread"] == int(
            counted["launch__registers_per_thread"]
        )
        assert set(counted) <= set(ncu.METRICS)


def test_an_answer_without_a_table_is_an_error() -> None:
    for text in ("", "==PROF== Connected to process 1\n"):
        with pytest.raises(HotpathError, match="no table of counters"):
            list(ncu.parse(text, GATHER.headline))


def test_an_answer_that_says_it_saw_no_kernel_is_no_error() -> None:
    assert values("==PROF== Connected\n==WARNING== No kernels were profiled.\n") == {}


def test_a_table_without_kernels_is_no_counters() -> None:
    header, units, *_ = table_of(REAL)
    assert values(f"{header}\n{units}\n") == {}


def test_an_answer_cut_off_in_a_row_is_an_error() -> None:
    header, units, first, *_ = table_of(REAL)
    cut = first[: len(first) // 2].rpartition(",")[0]
    with pytest.raises(HotpathError, match=r"ncu: expected \d+ fields, got \d+"):
        list(ncu.parse("\n".join([header, units, cut]), GATHER.headline))


def test_a_counter_the_kernel_does_not_have_is_left_out() -> None:
    (variant, counted), *_ = values(REAL).items()
    lines = table_of(REAL)
    at = lines[0].split('","').index("dram__bytes_read.sum")
    fields = lines[2].strip('"').split('","')
    fields[at] = "n/a"
    lines[2] = '"' + '","'.join(fields) + '"'
    left = values("\n".join(lines[:3]))[variant]
    assert set(counted) - set(left) == {"dram__bytes_read.sum"}


def test_counters_of_several_kernels_are_summed_where_they_can_be(tmp_path: Path) -> None:
    path = tmp_path / "v.ncu.csv"
    rows = [
        stored_counters.Counter("n=1", kernel, metric, "", value)
        for kernel, metric, value in (
            ("short", "gpu__time_duration.sum", 10.0),
            ("short", "launch__registers_per_thread", 99.0),
            ("long", "gpu__time_duration.sum", 30.0),
            ("long", "launch__registers_per_thread", 16.0),
        )
    ]
    stored_counters.write_counters(path, rows)
    assert read_counters(path) == {
        "gpu__time_duration.sum": 40.0,
        "launch__registers_per_thread": 16.0,
    }
    stored_counters.write_counters(path, [])
    assert read_counters(path) == {}
    for broken in ("", "case,kernel\nn=1,k\n", "case,kernel,metric,unit,value\na,b,c,d,high\n"):
        path.write_text(broken)
        with pytest.raises(HotpathError, match=r"v\.ncu\.csv: "):
            read_counters(path)


Raw = tuple[int, int, int | None, str, str, int | None, int]


def test_a_timeline_begins_at_zero_and_runs_in_order(tmp_path: Path) -> None:
    raw: list[Raw] = [
        (5_000, 9_000, 7, "kernel", "_Z4copyv", None, 3),
        (2_000, 3_500, None, "host call", "cudaLaunchKernel", None, 3),
        (0, 0, 7, "memcpy", "memcpy", 64, 4),
    ]
    first, second = normalised(raw)
    assert (first.name, first.start, first.end) == ("cudaLaunchKernel", 0.0, 1.5e-6)
    assert (second.stream, second.start, second.end) == (
        7,
        pytest.approx(3e-6),
        pytest.approx(7e-6),
    )
    write_events(tmp_path / "t.csv", [first, second])
    read = read_events(tmp_path / "t.csv")
    assert read["end"].tolist() == [1.5e-6, 7e-6]
    assert read["stream"].isna().tolist() == [True, False]


def test_an_empty_timeline_has_a_header_alone(tmp_path: Path) -> None:
    assert normalised([]) == []
    write_events(tmp_path / "t.csv", [])
    assert read_events(tmp_path / "t.csv").empty
    (tmp_path / "t.csv").write_text("")
    with pytest.raises(HotpathError, match=r"t\.csv: line 1: expected the columns"):
        read_events(tmp_path / "t.csv")


@pytest.mark.parametrize("path", TIMELINES, ids=lambda path: path.name)
def test_real_timelines_are_in_order_and_the_host_comes_first(path: Path) -> None:
    events = read_events(path)
    assert events["start"].iloc[0] == 0
    assert events["start"].is_monotonic_increasing
    assert (events["end"] >= events["start"]).all()
    assert set(events["kind"]) <= {"host call", "kernel", "memcpy", "memset"}
    calls, work = (events[events["stream"].isna() == is_host] for is_host in (True, False))
    assert set(calls["kind"]) <= {"host call"}
    assert "host call" not in set(work["kind"])
    launched = work.merge(calls, on="correlation", suffixes=("", "_call"))
    assert (launched["start"] >= launched["start_call"]).all()


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_Z11gather_rows6Gather", "gather_rows"),
        ("_Z9copy_rowsILi4ELi2EEv4Rows", "copy_rows<4, 2>"),
        ("_Z6unpackI7ByWidthLj2048EEv10ParametersIXT0_EE", "unpack<ByWidth, 2048>"),
        ("_Z4fillIfEvPT_", "fill<float>"),
        ("_Z10copy_tilesIhEv5Tiles", "copy_tiles"),
        ("_ZN43_GLOBAL__N__18634171_10_checked_cu_c73afa0211find_faultsE5Batch", "find_faults"),
        (
            "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EE"
            "EEviT0_T1_",
            "vectorized_elementwise_kernel",
        ),
        ("_Z4holdIN12_GLOBAL__N_16Shift8EEvT_", "hold"),
        ("_Z7unpack8ILj8ELm3EEvv", "unpack8<8, 3>"),
        ("cudaLaunchKernel", "cudaLaunchKernel"),
        ("_Z", "_Z"),
    ],
)
def test_kernels_have_readable_names(symbol: str, name: str) -> None:
    assert kernel_name(symbol) == name


# From a build of a copy kernel: an index, then 16 bytes a lane at once, and a guarded rest.
SNIPPET = (DATA / "copy_sm90.sass").read_text()


def test_real_disassembly_is_read_by_width_and_order() -> None:
    (code,) = sass.parse_sass(SNIPPET)
    assert (code.arch, code.kernel) == ("sm_90", "_Z11gather_rows6Gather")
    assert code.loads == Counter({128: 2, 64: 1})
    assert code.stores == Counter({128: 2})
    # The index is waited for before either vector is asked for.
    assert (code.loads_in_flight, code.in_flight_bytes) == (2, 2 * 16 * 32)


def test_what_is_no_disassembly_has_no_kernels() -> None:
    assert list(sass.parse_sass("")) == []
    assert list(sass.parse_sass("Fatbin elf code:\n\tcode for sm_90\n\t.target sm_90\n")) == []


def test_an_unread_module_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.toolchain.sass.sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HotpathError, match="cuobjdump is neither in this environment nor in PATH"):
        sass.find_tools()
    step = GATHER.with_role("step")[0]
    sass.write_code(tmp_path / "code.csv", STUDY, step.name, [], "no tool <here>")
    facts = StudyFacts(make_inputs(make_root(tmp_path / "root")), GATHER)
    unread = replace(facts.inputs, machine_code=sass.read_code(tmp_path / "code.csv"))
    sentence = machine_code(StudyFacts(unread, GATHER), step)
    assert sentence == "The machine code was not read: no tool &lt;here&gt;."
    assert sass.read_code(tmp_path / "none.csv") == {}
    assert machine_code(facts, step) == ""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, sass.KernelCode]:
    """Machine code of three steps, freshly built."""
    folder, toolchain = tmp_path_factory.mktemp("modules"), find_toolchain()
    bindings = folder / "bindings.o"
    compile_bindings(GATHER, toolchain, bindings)
    found = {}
    for name in ("v1_vectorized", "v2_warp_per_token", "v3_loads_first"):
        variant = GATHER.variant(name)
        out = module_path(folder, GATHER, variant)
        compile_module(GATHER, variant, toolchain, "sm_90", bindings, out)
        (found[name],) = sass.parse_sass(sass.disassemble(out))
    return found


def test_a_step_shows_in_the_machine_code(built: dict[str, sass.KernelCode]) -> None:
    vectors = GATHER.constants["token_bytes"] // 16
    assert built["v1_vectorized"].loads[128] == vectors
    assert built["v1_vectorized"].stores == Counter({128: vectors})
    assert built["v2_warp_per_token"].loads_in_flight == 1
    assert built["v3_loads_first"].loads_in_flight == 2
    assert built["v3_loads_first"].in_flight_bytes == 2 * built["v2_warp_per_token"].in_flight_bytes


def test_machine_code_stands_beside_that_of_the_step_before(
    built: dict[str, sass.KernelCode], tmp_path: Path
) -> None:
    texts = []
    for name, code in built.items():
        sass.write_code(tmp_path / "one.csv", STUDY, name, [code])
        texts.append((tmp_path / "one.csv").read_text())
    (tmp_path / "all.csv").write_text(texts[0] + "".join(t.partition("\n")[2] for t in texts[1:]))
    read = sass.read_code(tmp_path / "all.csv")
    assert {name: read[STUDY, name].kernels for name in built} == {
        name: [code] for name, code in built.items()
    }
    inputs = replace(make_inputs(make_root(tmp_path / "root")), machine_code=read)
    shown = machine_code(StudyFacts(inputs, GATHER), GATHER.variant("v3_loads_first"))
    assert shown.index("v2_warp_per_token") < shown.index("v3_loads_first")
    assert shown.replace("\u00a0", " ").count("1 of 8 B, 2 of 16 B") == 2
    assert "1.02 kB" in shown


def captured(root: Path, study: Study, name: str, kind: str, text: str, **entry: Any) -> None:
    """Put a capture of a variant beside its samples on `box`."""
    where = root / "results" / "box" / study.name / f"{name}.{kind}.csv"
    where.write_text(text)
    default = {
        "status": "captured",
        "case": study.headline,
        "at": "2026-01-02T03:04:05Z",
        "source_sha256": fingerprint(study, study.variant(name)),
    }
    set_capture(root / "results", "box", study.name, name, kind, default | entry)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Made-up samples on one machine, with a real variant's counters and timeline."""
    root = make_root(tmp_path / "root")
    study = discover(root)[STUDY]
    steps = [step.name for step in study.with_role("step")]
    write_machine(root / "results", "box", study)
    found: dict[str, list[stored_counters.Counter]] = {}
    for variant, counter in ncu.parse(REAL, study.headline):
        found.setdefault(variant, []).append(counter)
    counted = next(iter(found.values()))
    for name, source in ((steps[0], {}), (steps[1], {}), (steps[2], {"source_sha256": "0" * 64})):
        stored_counters.write_counters(tmp_path / "c.csv", counted)
        captured(root, study, name, "ncu", (tmp_path / "c.csv").read_text(), **source)
        events = normalised(
            [
                (1, 200_000_001, None, "host call", "cudaLaunchKernel", None, 1),
                (2_001, 200_000_001, 7, "kernel", "_Z4copyv", None, 1),
                (200_000_001, 200_002_001, 7, "memcpy", "memcpy", 64, 2),
            ]
        )
        write_events(tmp_path / "t.csv", events)
        captured(root, study, name, "timeline", (tmp_path / "t.csv").read_text(), **source)
    for kind in ("ncu", "timeline"):
        status = "not captured: counters need <permission>"
        set_capture(root / "results", "box", STUDY, steps[3], kind, {"status": status})
    return root


def test_counters_stale_and_missing_are_said(root: Path) -> None:
    study = discover(root)[STUDY]
    first, second, third, fourth, fifth = study.with_role("step")
    facts = StudyFacts(make_inputs(root), study)
    alone, beside, stale, refused, never = (
        counter_tables(facts, step, "../") for step in (first, second, third, fourth, fifth)
    )
    for row in ("read over the link", "achieved occupancy", "warps wait for", "not a timing"):
        assert row in alone
    assert f"{second.name}.ncu.csv" in beside
    assert f'<th scope="col">{first.name}</th><th scope="col">{second.name}</th>' in beside
    assert f"{third.name}, stale" in stale and f"{second.name}, stale" not in stale
    assert refused == never == ""
    assert gaps(facts, first) == []
    assert gaps(facts, third) == ["The timeline on box is stale: the code has changed since."]
    assert gaps(facts, fourth) == [
        "No counters and no timeline on box: counters need &lt;permission&gt;."
    ]
    assert gaps(facts, fifth) == ["No counters and no timeline on box: no profiler has been run."]
    (root / "results" / "box" / STUDY / f"{first.name}.ncu.csv").unlink()
    assert "is missing" in facts.captures.find("box", first, "ncu").reason


def test_a_variant_without_the_profiled_case_says_so(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)["link_calibration"]
    write_machine(root / "results", "box", study)
    facts = StudyFacts(make_inputs(root), study)
    other = next(v for v in study.variants if study.headline not in {c.id for c in v.cases})
    assert "does not have the case" in facts.captures.find("box", other, "timeline").reason


def test_a_capture_the_study_does_not_ask_for_is_said(root: Path) -> None:
    facts = StudyFacts(make_inputs(root), discover(root)[STUDY])
    unwanted = replace(facts.study.variant("v4_grid_stride"), captures=("timeline",))
    assert facts.captures.find("box", unwanted, "ncu").reason == "the study asks for none"


def test_the_timeline_has_a_row_a_lane_and_shows_a_step_first(root: Path) -> None:
    facts = StudyFacts(make_inputs(root), discover(root)[STUDY])
    events = timeline_events(facts)
    assert set(events["lane"]) == {"host", "stream 7"}
    assert set(events.loc[events["kind"] == "kernel", "name"]) == {"copy"}
    assert events.groupby("variant")["end_us"].max().tolist() == pytest.approx([200_002] * 3)
    assert set(events["state"]) == {"captured", "stale"}
    chart: Any = study_charts(facts)["timeline"]
    params = {param["name"]: param for param in chart.to_dict()["params"]}
    assert params["machine_shown"]["bind"]["options"] == ["box"]
    assert params["variant_shown"]["value"] in set(events["variant"])
    windows = [10, 100, 1_000, 10_000, 100_000]
    options = [None, *windows, *(-window for window in windows)]
    assert params["window_us"]["bind"]["options"] == options


def test_no_timelines_no_chart(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write_machine(root / "results", "box", GATHER, variants=GATHER.with_role("step"))
    facts = StudyFacts(make_inputs(root), GATHER)
    assert timeline_chart(facts) is None


def test_a_point_can_be_followed_to_its_source(root: Path) -> None:
    study = discover(root)[STUDY]
    first, second = study.with_role("step")[:2]
    second.path.write_text(second.path.read_text() + "\nint later_than_the_results;\n")
    site = build(root)
    data = (site / "data" / "index.html").read_text()
    row = re.search(rf'<tr id="box-{STUDY}-{first.name}">.*?</tr>', data)
    assert row is not None
    for kind in ("csv", "json", "ncu.csv", "timeline.csv", "source.cu"):
        assert f"data/box/{STUDY}/{first.name}.{kind}" in row[0]
    folder = site / "data" / "box" / STUDY
    same = (folder / f"{first.name}.source.cu").read_text()
    assert same == f"// Measured at commit {'0' * 40}; unchanged since.\n{first.path.read_text()}"
    assert not (folder / f"{second.name}.source.cu").exists()
    assert "stale" in (folder / f"{second.name}.source-changed.cu").read_text().splitlines()[0]
    page = text_of(site / "studies" / STUDY / "index.html")
    assert "Counters on box" in page
    assert "No counters and no timeline on box: counters need &lt;permission&gt;." in page
    assert (site / "charts" / STUDY / "timeline.csv").exists()


def test_samples_of_a_variant_that_is_gone_have_no_source(root: Path) -> None:
    folder = root / "results" / "box" / STUDY
    inputs = make_inputs(root)
    key = ("box", STUDY, "gone")
    provenance = json.loads((folder / "v0_byte_copy.json").read_text())
    inputs.provenance[key] = provenance  # type: ignore[index]
    assert stage_sources(inputs, {key: ["gone.csv"]}, root) == {key: ["gone.csv"]}
