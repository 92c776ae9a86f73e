"""What study.yaml and config.yaml may say, and the one error that each fault in them gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from analysis.config import CONFIG_FILE, load_config
from analysis.errors import FieldError, HotpathError
from analysis.expression import evaluate
from analysis.gpu import Gpu
from analysis.measure.needs import Provision
from analysis.schema import read_yaml
from analysis.study import Case, Study, discover, load_study, parse_case

NAME = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)


def description() -> dict[str, Any]:
    """A small study with a step, its repeat, a ceiling and two case sets."""
    return {
        "title": "Copy",
        "question": "How fast?",
        "budget_s": 5,
        "constants": {"row_bytes": 16},
        "metrics": {"host_time": {"unit": "s", "label": "host time"}},
        "cases": {
            "small": {"rows": [1, 2], "draw": ["once", "twice"], "payload_bytes": "rows*row_bytes"},
            "large": {"rows": [64], "draw": ["once"], "payload_bytes": 1024, "grid": "full"},
        },
        "headline": {"rows": 2, "draw": "once"},
        "variants": [
            {"name": "first", "role": "step", "title": "First", "cases": ["small", "large"]},
            {
                "name": "second",
                "role": "step",
                "title": "Second",
                "after": "first",
                "cases": ["small"],
                "constants": {"row_bytes": 32},
            },
            {
                "name": "again",
                "role": "step",
                "title": "First again",
                "after": "first",
                "source": "first",
                "cases": ["small"],
            },
            {"name": "limit", "role": "ceiling", "title": "Limit", "cases": ["small"]},
            {"name": "kernel", "role": "step", "title": "K", "cases": ["small"], "needs": ["gpu"]},
        ],
    }


def load(folder: Path, data: Mapping[str, Any]) -> Study:
    folder.mkdir(exist_ok=True)
    (folder / "study.yaml").write_text(yaml.safe_dump(dict(data), sort_keys=False))
    for source in ("first.py", "second.py", "limit.cpp", "kernel.cu"):
        (folder / source).touch()
    return load_study(folder / "study.yaml")


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return load(tmp_path / "copy", description())


def put(value: object, *path: str | int) -> Callable[[dict[str, Any]], None]:
    """An edit that puts `value` at `path` of a description."""

    def edit(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return edit


def drop(*path: str | int) -> Callable[[dict[str, Any]], None]:
    def edit(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        del data[path[-1]]

    return edit


@pytest.mark.parametrize(
    ("edit", "field", "expected", "got"),
    [
        (put("Copy", "titel"), "", "one of the keys", "['titel']"),
        (drop("question"), "", "the keys", "['budget_s'"),
        (put([], "variants", 0, "neds"), "variants.0", "one of the keys", "['neds']"),
        (put("x", "metrics", "host_time", "lable"), "metrics.host_time", "'label'", "['lable']"),
        (put("ms", "metrics", "host_time", "unit"), "metrics.host_time.unit", "one of", "'ms'"),
        (
            put("host_tim", "metrics", "host_time", "part_of"),
            "metrics.host_time.part_of",
            "in s",
            "tim",
        ),
        (put("fulll", "cases", "small", "grid"), "cases.small.grid", "one of", "'fulll'"),
        (drop("cases", "small", "payload_bytes"), "cases.small", "payload_bytes", "rows"),
        (put(["sass"], "variants", 0, "captures"), "variants.0.captures.0", "one of", "'sass'"),
        (put("stepp", "variants", 0, "role"), "variants.0.role", "one of", "'stepp'"),
        (put("First", "variants", 0, "name"), "variants.0.name", "text like", "'First'"),
        (put("none", "variants", 1, "after"), "variants.second.after", "'first'", "'none'"),
        (put(["huge"], "variants", 1, "cases"), "variants.second.cases", "'small'", "'huge'"),
        (put([-1], "cases", "small", "rows"), "cases.small.rows.0", "at least 0", "-1"),
        (put([1.5], "cases", "small", "rows"), "cases.small.rows.0", "whole number", "1.5"),
        (put([True], "cases", "small", "rows"), "cases.small.rows.0", "whole number", "True"),
        (put(["a,b"], "cases", "small", "draw"), "cases.small.draw.0", "text like", "'a,b'"),
        (put([1, 1], "cases", "small", "rows"), "cases.small.rows", "differ", "[1, 1]"),
        (put([], "cases", "small", "rows"), "cases.small.rows", "not empty", "[]"),
        (put("first", "variants", 1, "name"), "variants", "every entry once", "'first'"),
        (put([2], "cases", "large", "rows"), "variants.first.cases", "once", "'rows=2,draw=once'"),
        (put("gone", "variants", 2, "source"), "variants.again.source", "'gone.cu'", "[]"),
        (drop("variants", 4, "needs"), "variants.kernel.needs", "gpu among them", "None"),
        (put(["torch"], "variants", 4, "needs"), "variants.kernel.needs", "gpu", "['torch']"),
        (put(0, "constants", "row_bytes"), "constants.row_bytes", "at least 1", "0"),
        (put({"lanes": 2}, "variants", 0, "options"), "variants.0.options.lanes", "string", "2"),
        (
            put({"lanes": "2x"}, "variants", 0, "options"),
            "variants.0.options.lanes",
            "text like",
            "'2x'",
        ),
        (
            put({"row_bytes": "wide"}, "variants", 0, "options"),
            "variants.first.options",
            "names that no constant has",
            "'row_bytes'",
        ),
        (put(0, "budget_s"), "budget_s", "at least 1", "0"),
        (put({"rows": 3, "draw": "once"}, "headline"), "headline", "some variant", "rows=3"),
        (put({"rows": 2, "darw": "once"}, "headline"), "headline", "some variant", "darw=once"),
        (put([], "variants"), "variants", "not empty", "[]"),
        (put(["gpu"], "cases", "large", "metrics"), "cases.large.metrics", "'host_time'", "'gpu'"),
        (put(0, "cases", "large", "samples"), "cases.large.samples", "at least 1", "0"),
        (put(0, "cases", "large", "visits"), "cases.large.visits", "at least 1", "0"),
    ],
)
def test_a_fault_in_a_study_is_one_error_naming_field_expected_and_got(
    tmp_path: Path, edit: Callable[[dict[str, Any]], None], field: str, expected: str, got: str
) -> None:
    data = description()
    edit(data)
    with pytest.raises(FieldError) as caught:
        load(tmp_path / "copy", data)
    assert caught.value.field == (f"copy/study.yaml: {field}" if field else "copy/study.yaml")
    said_expected, _, said_got = str(caught.value).partition(", got ")
    assert expected in said_expected.partition(": expected ")[2]
    assert got in said_got
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("payload", "cause"),
    [
        ("rows * row_bytez", "row_bytez"),
        ("rows * draw", "draw"),
        ("rows // 0", "by zero"),
        ("rows ** 2", "rows ** 2"),
        ("rows / 2", "rows / 2"),
        ("rows *", "invalid syntax"),
        ("max(rows, 2)", "max(rows, 2)"),
        ("__import__('os')", "__import__"),
    ],
)
def test_payload_bytes_that_is_no_arithmetic_of_known_names_is_refused(
    tmp_path: Path, payload: str, cause: str
) -> None:
    data = description()
    data["cases"]["small"]["payload_bytes"] = payload
    with pytest.raises(FieldError) as caught:
        load(tmp_path / "copy", data)
    assert caught.value.field == "copy/study.yaml: cases.small.payload_bytes"
    assert cause in str(caught.value)
    assert "'draw', 'row_bytes', 'rows'" in str(caught.value)
    assert str(caught.value).endswith(f"got {payload!r}")


def test_a_negative_payload_is_refused(tmp_path: Path) -> None:
    data = description()
    data["cases"]["small"]["payload_bytes"] = "rows - 2"
    with pytest.raises(FieldError, match=r"payload_bytes: expected a value of at least 0, got -1"):
        load(tmp_path / "copy", data)


def test_a_fault_in_a_case_set_that_no_variant_takes_is_seen(tmp_path: Path) -> None:
    data = description()
    data["cases"]["spare"] = {"rows": [1], "payload_bytes": "nothing"}
    with pytest.raises(FieldError, match=r"cases\.spare\.payload_bytes"):
        load(tmp_path / "copy", data)


def test_two_files_of_one_stem_are_ambiguous(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "first.cpp").touch()
    with pytest.raises(FieldError) as caught:
        load(tmp_path / "copy", description())
    assert caught.value.field == "copy/study.yaml: variants.first.source"
    assert str(caught.value).endswith("got ['first.cpp', 'first.py']")


def test_a_study_that_cannot_be_parsed_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(HotpathError, match=r"study\.yaml: cannot be read"):
        load_study(tmp_path / "study.yaml")
    (tmp_path / "study.yaml").write_text("title: [")
    with pytest.raises(HotpathError, match=r"study\.yaml: not valid YAML"):
        load_study(tmp_path / "study.yaml")


def test_cases_are_the_product_in_the_order_written(study: Study) -> None:
    assert [case.id for case in study.variant("second").cases] == [
        "rows=1,draw=once",
        "rows=1,draw=twice",
        "rows=2,draw=once",
        "rows=2,draw=twice",
    ]
    assert study.case_keys == ["rows", "draw"]
    assert study.headline == "rows=2,draw=once"


def test_a_case_set_may_name_metrics_samples_and_visits(tmp_path: Path) -> None:
    data = description()
    data["cases"]["large"] |= {"metrics": [], "samples": 1, "visits": 3}
    small, *_, large = load(tmp_path / "copy", data).variant("first").cases
    assert (small.metrics, small.samples, small.visits) == (None, None, 1)
    assert (large.metrics, large.samples, large.visits) == ((), 1, 3)
    assert large.id == "rows=64,draw=once"


def test_payloads_use_a_variants_own_constants(study: Study) -> None:
    assert [case.payload_bytes for case in study.variant("first").cases] == [16, 16, 32, 32, 1024]
    assert [case.payload_bytes for case in study.variant("second").cases] == [32, 32, 64, 64]


def test_grids_run_the_cheapest_case_the_default_ones_or_all(study: Study) -> None:
    first = study.variant("first")
    assert [case.id for case in first.in_grid("smoke")] == ["rows=1,draw=once"]
    assert first.in_grid("default") == first.cases[:4]
    assert first.in_grid("full") == first.cases


def test_a_calibration_is_measured_whole() -> None:
    calibration = discover()["link_calibration"]
    assert calibration.companions("copy_engine") == list(calibration.variants)


def test_companions_are_what_it_comes_after_and_the_ceilings(study: Study) -> None:
    assert [v.name for v in study.companions("second")] == ["first", "second", "limit"]
    assert [v.name for v in study.companions("limit")] == ["limit"]
    with pytest.raises(FieldError, match=r"study copy: variant: expected one of .* got 'third'"):
        study.companions("third")


def test_a_repeat_is_the_same_file_with_the_same_settings(tmp_path: Path, study: Study) -> None:
    repeats = {variant.name for variant in study.variants if study.is_repeat(variant)}
    assert repeats == {"again"}
    settings = {"flags": ["-O1"], "constants": {"row_bytes": 48}, "options": {"lanes": "wide"}}
    for key, value in settings.items():
        data = description()
        data["variants"][2][key] = value
        changed = load(tmp_path / key, data)
        assert not changed.is_repeat(changed.variant("again"))


@given(
    values=st.dictionaries(
        NAME,
        st.integers(min_value=0)
        | st.from_regex(r"[A-Za-z0-9_.-]*[A-Za-z_.-][A-Za-z0-9_.-]*", fullmatch=True),
        min_size=1,
    )
)
def test_case_ids_say_their_values(values: dict[str, int | str]) -> None:
    parsed = parse_case(Case(values, 0, "default").id)
    assert parsed == values
    assert list(parsed) == list(values)


@pytest.mark.parametrize("study", discover().values(), ids=lambda study: study.name)
def test_every_case_of_the_repository_parses_back(study: Study) -> None:
    for variant in study.variants:
        assert all(parse_case(case.id) == case.values for case in variant.cases)


def test_parts_of_a_time_are_no_clock(tmp_path: Path) -> None:
    data = description()
    data["metrics"]["call_time"] = {"unit": "s", "label": "one call", "part_of": "host_time"}
    study = load(tmp_path / "copy", data)
    assert study.time_metrics == study.metrics_for(*study.variants) == ["host_time"]


def test_a_number_asked_of_a_case_must_be_one() -> None:
    case = Case({"rows": 3, "draw": "once"}, 0, "default")
    assert case.number("rows") == 3
    with pytest.raises(FieldError, match=r"case rows=3,draw=once: draw: .* got 'once'"):
        case.number("draw")
    with pytest.raises(FieldError, match=r"topk: expected a whole number, got None"):
        case.number("topk")


NAMES = {"bs": 7, "topk": 0, "draw": "once"}
ATOMS = st.integers(min_value=0, max_value=10**6).map(str) | st.sampled_from(["bs", "topk"])
ARITHMETIC = st.recursive(
    ATOMS,
    lambda part: st.tuples(part, st.sampled_from(["+", "-", "*", "//"]), part).map(
        lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
    ),
    max_leaves=12,
)

REFUSED = (
    *("{} ** {}", "{} / {}", "{} % {}", "{} << {}", "{} < {}", "{} and {}", "[{}, {}]"),
    *("f({}, {})", "{} if {} else 1", "{}.real + {}", "{} + 1.5 * {}", "{} + 'a' * {}"),
    *("{} * (-{})", "{} + draw * {}", "{} - unknown * {}", "(x := {}) + {}"),
)


@given(ARITHMETIC)
def test_expressions_agree_with_python(expression: str) -> None:
    try:
        expected = eval(expression, {"__builtins__": {}}, dict(NAMES))
    except ZeroDivisionError:
        return
    assert evaluate(expression, NAMES) == expected


@given(
    left=ARITHMETIC,
    right=ARITHMETIC,
    refused=st.sampled_from(REFUSED),
)
def test_expressions_of_anything_else_are_refused(left: str, right: str, refused: str) -> None:
    # Zero times anything is refused all the same: what is refused is the form, not the value.
    with pytest.raises((ValueError, ZeroDivisionError)) as caught:
        evaluate(refused.format(left, right), NAMES)
    assert caught.type is ValueError or "//" in left + right


def test_a_whole_number_is_an_expression() -> None:
    assert evaluate(4096, {}) == 4096


CONFIG = read_yaml(CONFIG_FILE)


@pytest.mark.parametrize(
    ("overrides", "field", "expected", "got"),
    [
        ({"grdi": "smoke"}, "", "one of the keys ['arch'", "['grdi']"),
        (
            {"grids": CONFIG["grids"] | {"smoke": {"round": 2, "samples": 1}}},
            "grids.smoke",
            "keys ['rounds', 'sample_budget_s', 'samples']",
            "['round']",
        ),
        ({"studies": ["h2d_gatherr"]}, "studies", "'h2d_gather'", "'h2d_gatherr'"),
        ({"studies": "method"}, "studies", "type array", "'method'"),
        ({"grid": "huge"}, "grid", "['smoke', 'default', 'full']", "'huge'"),
        ({"machine": "published"}, "machine", "anything but", "'published'"),
        ({"machine": "My Box"}, "machine", "text like", "'My Box'"),
        ({"machine": "../box"}, "machine", "text like", "'../box'"),
        ({"arch": "90"}, "arch", "sm_", "'90'"),
        ({"arch": "sm_9"}, "arch", "sm_", "'sm_9'"),
        ({"gpu": -1}, "gpu", "at least 0", "-1"),
        ({"gpu": "first"}, "gpu", "GPU-", "'first'"),
        ({"shared_gpu": "allow"}, "shared_gpu", "['refuse', 'record']", "'allow'"),
        ({"round_limit_s": 0}, "round_limit_s", "above 0", "0"),
        ({"nvcc": ""}, "nvcc", "not empty", "''"),
    ],
)
def test_a_fault_in_the_configuration_is_one_error(
    overrides: dict[str, Any], field: str, expected: str, got: str
) -> None:
    with pytest.raises(FieldError) as caught:
        load_config(overrides)
    assert caught.value.field == (f"config: {field}" if field else "config")
    said_expected, _, said_got = str(caught.value).partition(", got ")
    assert expected in said_expected
    assert got in said_got


def test_overrides_go_over_the_file() -> None:
    config = load_config({"grid": "smoke", "studies": ["method"], "machine": "my-box"})
    assert list(config.studies) == ["method"]
    assert config.grid.rounds == CONFIG["grids"]["smoke"]["rounds"]
    assert config.machine == "my-box"
    assert "build" in config.results.parts
    assert set(load_config({"studies": []}).studies) == set(discover())
    assert "build" not in load_config().results.parts


def provision(arch: str | None, cuda: str | None = "13.0") -> Provision:
    gpu = arch and Gpu(handle=None, name="", uuid="", index=0, arch=arch, pci_bus_id="")
    return Provision(gpu or None, cuda)


@pytest.mark.parametrize(
    ("need", "arch", "cuda", "reason"),
    [
        ("gpu", "sm_90", "13.0", None),
        ("gpu", None, "13.0", "no GPU"),
        ("sm_90", None, "13.0", "no GPU"),
        ("sm_90", "sm_90", "13.0", None),
        ("sm_90a", "sm_100", "13.0", None),
        ("sm_90", "sm_89", "13.0", "needs sm_90, the GPU is sm_89"),
        ("cuda>=12.8", None, "12.8", None),
        ("cuda>=12.8", None, "12.10", None),
        ("cuda>=12.10", None, "12.9", "needs CUDA 12.10, modules are built with 12.9"),
        ("cuda>=12.8", None, None, "needs CUDA 12.8, modules are built with None"),
    ],
)
def test_a_need_is_met_or_its_reason_is_told(
    tmp_path: Path, need: str, arch: str | None, cuda: str | None, reason: str | None
) -> None:
    data = description()
    data["variants"][0]["needs"] = [need]
    variant = load(tmp_path / "copy", data).variant("first")
    assert provision(arch, cuda).unmet(variant) == reason


@pytest.mark.parametrize("need", ["cuda", "sm_ninety", "gpus", "cuda>=13", "rocm"])
def test_a_need_nobody_knows_is_an_error(tmp_path: Path, need: str) -> None:
    data = description()
    data["variants"][0]["needs"] = [need]
    variant = load(tmp_path / "copy", data).variant("first")
    with pytest.raises(FieldError) as caught:
        provision("sm_90").unmet(variant)
    assert caught.value.field == "variant first: needs"
    assert str(caught.value).endswith(f"got {need!r}")


@pytest.mark.parametrize("study", discover().values(), ids=lambda study: study.name)
def test_every_need_of_the_repository_is_known(study: Study) -> None:
    assert all(provision(None).unmet(variant) for variant in study.variants if variant.on_gpu)
    for variant in study.variants:
        reason = provision("sm_90").unmet(variant)  # FieldError where the need is unknown
        assert reason is None or reason.strip()
