"""Cases, grids, companions and repeats of a study, and comparisons of its variants."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from analysis.base.reading import read_yaml
from analysis.study import Case, Study, load_study, parse_case
from tests.repository import STUDIES
from tests.study.described import description, load

NAME = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
WORD = st.from_regex(r"[A-Za-z0-9_.-]*[A-Za-z_.-][A-Za-z0-9_.-]*", fullmatch=True)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return load(tmp_path / "copy", description())


def test_cases_are_the_product_in_the_order_written(study: Study) -> None:
    first, second = study.variants[:2]
    cases = [f"rows={rows},draw={draw}" for rows in (1, 2) for draw in ("once", "twice")]
    assert [case.id for case in second.cases] == cases
    assert study.headline == study.captured[0].case == cases[2]
    # Payloads use the constants of the variant.
    assert [case.payload_bytes for case in first.cases] == [16, 16, 32, 32, 1024]
    assert [case.payload_bytes for case in second.cases] == [32, 32, 64, 64]


def test_a_case_set_limits_what_is_measured(tmp_path: Path) -> None:
    data = description()
    data["cases"]["large"] |= {"metrics": [], "samples": 1, "visits": 3}
    data["cases"]["wide"] = {"rows": [2, 4], "draw": ["once"], "payload_bytes": 16}
    data["variants"][1] |= {"full": ["wide"]}
    study = load(tmp_path / "copy", data)
    large, second = study.variant("first").cases[-1], study.variant("second")
    assert (large.metrics, large.samples, large.visits, large.every) == ((), 1, 3, 1)
    usual, wider = second.in_grid("default"), second.in_grid("full")
    # The case that both sets have is that of the usual set.
    assert wider[:4] == usual and [case.id for case in wider[4:]] == ["rows=4,draw=once"]


def test_grids_run_the_headline_the_default_cases_or_all(study: Study) -> None:
    first = study.variant("first")
    assert [case.id for case in first.in_grid("smoke")] == ["rows=2,draw=once"]
    without = replace(first, headline="rows=9,draw=once")
    assert [case.id for case in without.in_grid("smoke")] == ["rows=1,draw=once"]
    assert (first.in_grid("default"), first.in_grid("full")) == (first.cases[:4], first.cases)


def test_a_calibration_without_enough_fitted_cases_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "link_calibration"
    shutil.copytree(STUDIES[file.name].folder, file)
    data = read_yaml(file / "study.yaml")
    rows = data["variants"][0]
    rows["full"], rows["cases"] = ["row_sizes", "occupancy", "few_rows"], ["alignments", "strides"]
    (file / "study.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    message = (
        r"/study.yaml: calibrates: expected at least 24 fitted cases in the default grid, got 18$"
    )
    with pytest.raises(FieldError, match=message):
        load_study(file / "study.yaml")


def test_companions_are_all_on_either_side_of_its_comparisons(tmp_path: Path) -> None:
    data = description()
    usual = {"name": "usual", "role": "reference", "title": "Usual", "source": "limit"}
    data["variants"] += [usual | {"cases": ["small"]}]
    data["variants"][4] |= {"ceilings": []}
    study = load(tmp_path / "copy", data)
    expected = {
        "first": ["first", "second", "again", "limit", "usual"],
        "second": ["first", "second", "limit", "usual"],
        "usual": ["first", "second", "again", "kernel", "usual"],
        "limit": ["first", "second", "again", "limit"],  # it does not bound the kernel
    }
    assert {name: [one.name for one in study.companions(name)] for name in expected} == expected
    with pytest.raises(FieldError, match=r"study copy: variant: expected one of .* got 'third'"):
        study.companions("third")


def test_a_variant_is_measured_again_in_the_cases_that_its_page_shows(tmp_path: Path) -> None:
    asked = {"kind": "figure", "metric": "host_time", "at_least": 1e-9, "case": "rows=1,draw=twice"}
    claim = {"id": "second_only", "says": "A claim.", "test": asked | {"of": "second"}}
    study = load(tmp_path / "copy", description() | {"claims": [claim]})

    def shown(name: str) -> dict[str, list[str]]:
        return {v.name: [case.id for case in v.cases] for v in study.shown_again(name)}

    headline, claimed = "rows=2,draw=once", "rows=1,draw=twice"
    assert shown("first") == {key: [headline] for key in ["first", "second", "again", "limit"]}
    assert shown("second") == {key: [claimed, headline] for key in ["first", "second", "limit"]}
    calibration = replace(study, calibrates=True)
    assert calibration.companions("second") == list(calibration.variants)
    assert calibration.shown_again("second") == list(calibration.variants)


def test_a_repeat_is_the_same_file_with_the_same_settings(tmp_path: Path, study: Study) -> None:
    assert [variant.name for variant in study.variants if study.is_repeat(variant)] == ["again"]
    settings = {"flags": ["-O1"], "constants": {"row_bytes": 48}, "options": {"lanes": "wide"}}
    for key, value in settings.items():
        data = description()
        data["variants"][2][key] = value
        changed = load(tmp_path / key, data)
        assert not changed.is_repeat(changed.variant("again"))


@given(values=st.dictionaries(NAME, st.integers(min_value=0) | WORD, min_size=1))
def test_case_ids_say_their_values(values: dict[str, int | str]) -> None:
    assert [*parse_case(Case(values, 0, "default").id).items()] == [*values.items()]


def test_parts_of_a_time_are_no_clock(tmp_path: Path) -> None:
    data = description()
    data["metrics"]["call_time"] = {"unit": "s", "label": "one call", "part_of": "host_time"}
    study = load(tmp_path / "copy", data)
    assert study.time_metrics == study.metrics_for(*study.variants) == ["host_time"]
