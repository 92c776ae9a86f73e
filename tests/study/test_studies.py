"""Valid study.yaml files, one error for each fault, and the cases, grids and comparisons of a
study."""

import copy
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest

from analysis.base.errors import FieldError, HotpathError
from analysis.study import Study, discover, find_study, load_study, parse_case
from analysis.study.loading import NO_STUDIES
from tests import synthetic


def description() -> dict[str, Any]:
    """A small study with a step, its repeat, a ceiling and two case sets."""
    return synthetic.description(
        "Copy",
        {"host_time": ("s", "host time")},
        {
            "small": {"rows": [1, 2], "draw": ["once", "twice"], "payload_bytes": "rows*row_bytes"},
            "large": {"rows": [64], "draw": ["once"], "payload_bytes": 1024, "grid": "full"},
        },
        [
            {"name": "first", "cases": ["small", "large"]},
            {"name": "second", "after": "first", "constants": {"row_bytes": 32}},
            {"name": "again", "after": "first", "source": "first"},
            {"name": "limit", "role": "ceiling"},
            {"name": "kernel", "needs": ["gpu"]},
        ],
        constants={"row_bytes": 16},
        headline={"rows": 2, "draw": "once"},
    )


def load(folder: Path, data: Mapping[str, Any]) -> Study:
    path = synthetic.write_description(folder, data)
    for source in ("first.py", "second.py", "limit.cpp", "kernel.cu"):
        (folder / source).touch()
    return load_study(path)


GONE = object()
"""In place of a value that is left out."""


def edit(data: Any, path: str, value: object) -> None:
    """Put `value` at `path` in a description: keys and indices with dots between."""
    *outer, last = (int(part) if part.isdigit() else part for part in path.split("."))
    for key in outer:
        data = data[key]
    if value is GONE:
        del data[last]
    else:
        data[last] = value


SPEEDUP: Final = {"kind": "speedup", "of": "first", "over": "second", "at_least": 1}
NEAR: Final = {"kind": "near_best", "of": "first", "given": ["x=9"], "slower": 1.05, "at_least": 1}
UNITS: Final = {"kind": "units", "printed": "GB/s", "meant": "GiB/s", "at_least": 1}
BETWEEN: Final = {"kind": "between_cases", "of": "first", "at_least": 1, "over_case": "gone"}
CASE: Final = "rows=2,draw=once"
WARP = {"reads": "warp_rows"}
OTHER_CONSTANT = [{"case": {"rows": 2, "draw": "once"}, "constants": {"size": 1}}]
PAYLOAD, LINK = "cases.small.payload_bytes", "variants.second.link"
TEST, PARTS = "claims.0.test", "claims.1.all.1"

FAULTS: Final[tuple[tuple[str, object, str, str, str], ...]] = (
    ("titel", "Copy", "titel", "'title'", "'titel'"),
    ("question", GONE, "question", "a value", "None"),
    ("goal", "limit", "goal", "'first'", "'limit'"),
    ("headline.rows", 3, "headline", "some variant", "rows=3"),
    ("captured", OTHER_CONSTANT, "captured[0].constants", "one of", "size"),
    ("fitted_range", {"row": [1, 2]}, "fitted_range", "'rows'", "row"),
    ("metrics.host_time.share", True, "metrics.host_time.unit", "1 of a share", "s"),
    ("metrics.host_time.part_of", "host", "metrics.host_time.part_of", "in s", "host"),
    (PAYLOAD, "rows - 2", PAYLOAD, "at least 0", "-1"),
    (PAYLOAD, "row * 2", PAYLOAD, "'rows'] (row", "*"),
    (PAYLOAD, "rows // 0", PAYLOAD, "by zero", "//"),
    ("cases.small.rows", [True], "cases.small.rows.0", "whole number", "True"),
    ("cases.small.draw", ["a,b"], "cases.small.draw.0", "a name like", "'a,b'"),
    ("cases.large.rows", [2], "variants.first.cases", "once", "'rows=2,draw=once'"),
    ("cases.large.metrics", ["gpu"], "cases.large.metrics", "'host_time'", "'gpu'"),
    ("cases.spare", {"rows": [1], "payload_bytes": "x"}, "cases.spare.payload_bytes", "", "x"),
    ("variants.0.neds", [], "variants.first.neds", "'needs'", "'neds'"),
    ("variants.0.options", {"row_bytes": "wide"}, "variants.first.options", "constant", "row"),
    ("variants.1.name", "first", "variants", "every entry once", "'first'"),
    ("variants.1.after", "none", "variants.second.after", "'first'", "'none'"),
    ("variants.1.after", "second", "variants.second.after", "itself", "'second'"),
    ("variants.1.ceilings", ["first"], "variants.second.ceilings", "'limit'", "'first'"),
    ("variants.1.cases", ["huge"], "variants.second.cases", "'small'", "'huge'"),
    ("variants.1.constants", {"row": 3}, "variants.second.constants", "'row_bytes'", "'row'"),
    ("variants.2.source", "gone", "variants.again.source", "'gone.cu'", "[]"),
    ("variants.2.source", "twice", "variants.again.source", "", "['twice.cpp', 'twice.py']"),
    ("variants.4.needs", ["torch"], "variants.kernel.needs", "gpu", "['torch']"),
    ("variants.4.role", "shipped", "variants.kernel.packages", "or one that it needs", "None"),
    ("variants.4.needs", ["gpus>=1"], "variants.kernel.needs.0", "<2 or more>", "'gpus>=1'"),
    ("variants.1.link", {"reads": "copy_engine", "warps": 1}, LINK, "for copy_engine", "['warps']"),
    ("variants.1.link", WARP | {"row_bytes": "rows - 1"}, f"{LINK}.row_bytes", "at least 1", "0"),
    ("variants.1.link", WARP | {"row_bytes": 16, "layout": "draw"}, f"{LINK}.layout", "", "'once'"),
    ("claims.1", {"id": "it", "says": "So.", "untested": "so"}, "claims", "every entry once", "it"),
    ("claims.0.all", [SPEEDUP], "claims.it", "exactly one of test, all and untested", "all"),
    ("claims.0", {"id": "it", "says": "So."}, "claims.it", "exactly one of test", "[]"),
    (PARTS, GONE, "claims.both", "two comparisons or more under all", "1"),
    ("claims.0.published", 0, "claims.it.published", "a number above 0", "0"),
    (TEST, SPEEDUP | {"kind": "speed"}, "claims.it.test.kind", "'speedup'", "speed"),
    (TEST, SPEEDUP | {"of": "gone"}, "claims.it.test: of, over", "one of ['first'", "gone"),
    (TEST, SPEEDUP | {"over": "first"}, "claims.it.test: of, over", "every entry once", "first"),
    (PARTS, SPEEDUP | {"case": "x=9"}, "claims.both.all.1", "cases that first has", "x=9"),
    (PARTS, SPEEDUP | {"metric": "gone"}, "claims.both.all.1.metric", "['host_time'", "gone"),
    (TEST, SPEEDUP | {"limits": 3}, "claims.it.test.limits", "such as 'limit'", "limits"),
    (TEST, SPEEDUP | {"at_most": 3}, "claims.it.test", "exactly one", "['at_least', 'at_most']"),
    (TEST, SPEEDUP | {"at_least": 0}, "claims.it.test.at_least", "a number above 0", "0"),
    (PARTS, SPEEDUP | {"counter": "a__b.sum"}, "claims.both.all.1", "of ['by', 'metric']", "coun"),
    (TEST, BETWEEN, "claims.it.test", "cases that first has", "gone"),
    (TEST, BETWEEN | {"over_case": CASE}, "claims.it.test: cases", "once", CASE),
    (TEST, NEAR, "claims.it.test", "cases that first has", "x=9"),
    (TEST, UNITS, "claims.it.test", "no bound", "['at_least']"),
)
"""Edits of a valid description: path and value, and what the error names."""


def with_claims() -> dict[str, Any]:
    tests = [SPEEDUP, SPEEDUP | {"at_least": 2}]
    both = {"id": "both", "says": "So.", "all": tests}
    return description() | {"claims": [{"id": "it", "says": "So.", "test": SPEEDUP}, both]}


@pytest.mark.parametrize(("path", "value", "field", "expected", "got"), FAULTS)
def test_a_fault_in_a_study_is_one_error_naming_field_expected_and_got(
    tmp_path: Path, path: str, value: object, field: str, expected: str, got: str
) -> None:
    data = copy.deepcopy(with_claims())
    edit(data, path, value)
    (tmp_path / "copy").mkdir()
    for name in ("twice.cpp", "twice.py"):
        (tmp_path / "copy" / name).touch()
    with pytest.raises(FieldError) as caught:
        load(tmp_path / "copy", data)
    assert caught.value.field == f"copy/study.yaml: {field}"
    wanted, _, given = str(caught.value).partition(", got ")
    assert expected in wanted.partition(": expected ")[2] and got in given
    assert "\n" not in str(caught.value)


def places(data: object, path: str = "") -> Iterator[str]:
    """The path to every value within."""
    inner = dict(enumerate(data)) if isinstance(data, list) else data
    for key, value in inner.items() if isinstance(inner, dict) else ():
        yield f"{path}{key}"
        yield from places(value, f"{path}{key}.")


VALUES: Final[tuple[object, ...]] = (
    *(None, True, 0, -1, 1.5, float("inf"), "", "x", [], [[1]], {}, {1: 2}),
    date(2026, 1, 2),
)


@pytest.mark.heavy
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_wrong_value_anywhere_is_no_other_error(tmp_path: Path, value: object) -> None:
    whole = with_claims() | {
        "write_up": {"title": "Notes", "date": None},
        "fitted_range": {"rows": [1, 2]},
        "captured": [{"case": {"rows": 2, "draw": "once"}}],
    }
    whole["variants"][1] |= {"options": {"lanes": "many"}, "flags": ["-O2"]}
    load(tmp_path / "copy", whole)
    for place in places(whole):
        data = copy.deepcopy(whole)
        edit(data, place, value)
        with suppress(FieldError):
            load(tmp_path / "copy", data)


def test_a_study_that_cannot_be_read_or_has_no_valid_name_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "kernels" / "host_sum" / "study.yaml"
    with pytest.raises(HotpathError, match=r"study\.yaml: cannot be read"):
        load_study(file)
    twice = "title: One\nbase: &base {rows: 1}\nmore: {<<: *base, rows: 2}\ntitle: Another\n"
    file.parent.mkdir(parents=True)
    for text, message in (
        (b"title: it\nidea: colon: colon", "mapping values are not .* in line 2, column 12$"),
        ("title: Größe".encode("latin-1"), ""),
        (twice.encode(), "expected every key once, got 'title' again in line 4, column 1$"),
    ):
        file.write_bytes(text)
        with pytest.raises(HotpathError, match=rf"study\.yaml: not valid YAML: {message}"):
            load_study(file)
    for folder, message in (
        ("kernels/Host-Sum", r"the folder of a study: expected a name like .*, got 'Host-Sum'"),
        ("other/host_sum", "the folders of studies: expected every entry once, got 'host_sum'"),
    ):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "study.yaml").touch()
        with pytest.raises(FieldError, match=message):
            find_study("host_sum", tmp_path)
        shutil.rmtree(tmp_path / folder)


def test_studies_are_found_in_any_folder_and_name_each_other(tmp_path: Path) -> None:
    shutil.copytree(synthetic.ROOT / "kernels", tmp_path / "kernels")
    shutil.move(tmp_path / "kernels" / "copy", tmp_path / "elsewhere" / "copy")
    for top in (*NO_STUDIES, ".hidden", "kernels/deeper"):
        (tmp_path / top / "no_study").mkdir(parents=True)
        (tmp_path / top / "no_study" / "study.yaml").touch()
    assert [*discover(tmp_path)] == [*discover(synthetic.ROOT)]
    described = tmp_path / "elsewhere" / "copy" / "study.yaml"
    text = described.read_text()
    for limit, field in (("cpy, v1", 0), ("calls, v9", 1)):
        described.write_text(f"limit: [{limit}]\n{text}")
        with pytest.raises(FieldError, match=rf"^copy/study\.yaml: limit\.{field}: expected one"):
            discover(tmp_path)
    (tmp_path / "kernels" / "calls" / "study.yaml").write_text("title: [")
    assert find_study("copy", tmp_path).folder == described.parent
    with pytest.raises(FieldError, match=r"^study: expected one of \['calls', .*got 'cpy'$"):
        find_study("cpy", tmp_path)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    data = description()
    data["cases"]["large"] |= {"metrics": [], "samples": 1, "visits": 3}
    data["cases"]["wide"] = {"rows": [2, 4], "draw": ["once"], "payload_bytes": 16}
    data["variants"][1] |= {"full": ["wide"]}
    data["metrics"]["call_time"] = {"unit": "s", "label": "one call", "part_of": "host_time"}
    return load(tmp_path / "copy", data)


def test_cases_are_the_product_in_the_order_written_and_grids_choose_some(study: Study) -> None:
    first, second = study.variants[:2]
    cases = [f"rows={rows},draw={draw}" for rows in (1, 2) for draw in ("once", "twice")]
    usual, wider = second.in_grid("default"), second.in_grid("full")
    assert study.headline == study.captured_case(first) == cases[2]
    assert parse_case(cases[2]) == {"rows": 2, "draw": "once"}
    assert [case.id for case in usual] == cases
    # The case that both sets have is that of the usual set.
    assert wider[:4] == usual and [case.id for case in wider[4:]] == ["rows=4,draw=once"]
    # Payloads use the constants of the variant.
    assert [case.payload_bytes for case in first.cases] == [16, 16, 32, 32, 1024]
    assert [case.payload_bytes for case in usual] == [32, 32, 64, 64]
    assert (first.in_grid("default"), first.in_grid("full")) == (first.cases[:4], first.cases)
    large = first.cases[-1]
    assert (large.metrics, large.samples, large.visits, large.every) == ((), 1, 3, 1)
    for variant, shown in ((first, "rows=2"), (replace(first, headline="rows=9"), "rows=1")):
        assert [case.id for case in variant.in_grid("smoke")] == [f"{shown},draw=once"]
    assert study.time_metrics == study.metrics_for(*study.variants) == ["host_time"]


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
    assert replace(study, calibrates=True).companions("second") == list(study.variants)
    with pytest.raises(FieldError, match=r"study copy: variant: expected one of .* got 'third'"):
        study.companions("third")


def test_a_repeat_is_the_same_file_with_the_same_settings(tmp_path: Path) -> None:
    for key, value in (
        ("captures", []),
        ("flags", ["-O1"]),
        ("constants", {"row_bytes": 48}),
        ("options", {"lanes": "wide"}),
    ):
        data = description()
        data["variants"][2][key] = value
        study = load(tmp_path / key, data)
        assert study.is_repeat(study.variant("again")) is (key == "captures")
        assert not study.is_repeat(study.variant("second"))
