"""Valid study.yaml files, and one error for each fault."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest

from analysis.base.errors import FieldError, HotpathError
from analysis.study import discover, find_study, load_study
from analysis.study.loading import NO_STUDIES
from tests.study.described import GONE, description, edit, load
from tests.synthetic import ROOT as SYNTHETIC

SPEEDUP: Final = {"kind": "speedup", "of": "first", "over": "second", "at_least": 1}
NEAR: Final = {"kind": "near_best", "of": "first", "given": ["x=9"], "slower": 1.05, "at_least": 1}
UNITS: Final = {"kind": "units", "printed": "GB/s", "meant": "GiB/s", "at_least": 1}
BETWEEN: Final = {"kind": "between_cases", "of": "first", "at_least": 1, "over_case": "gone"}
CASE: Final = "rows=2,draw=once"
WARP = {"reads": "warp_rows"}
OTHER_CONSTANT = [{"case": {"rows": 2, "draw": "once"}, "constants": {"size": 1}}]
PAYLOAD, LINK = "cases.small.payload_bytes", "variants.second.link"

FAULTS: Final[tuple[tuple[str, object, str, str, str], ...]] = (
    ("titel", "Copy", "titel", "'title'", "'titel'"),
    ("question", GONE, "question", "a value", "None"),
    ("budget_s", 0, "budget_s", "equal to 1", "0"),
    ("goal", "limit", "goal", "'first'", "'limit'"),
    ("headline.rows", 3, "headline", "some variant", "rows=3"),
    ("captured", OTHER_CONSTANT, "captured[0].constants", "one of", "size"),
    ("fitted_range", {"draw": [1, 2]}, "fitted_range.draw", "numbers, ['once'", "[1, 2]"),
    ("fitted_range", {"rows": [3, 9]}, "fitted_range.rows", "[1, 2, 64]", "[3, 9]"),
    ("metrics.host_time.lable", "x", "metrics.host_time.lable", "'label'", "'lable'"),
    ("metrics.host_time.share", True, "metrics.host_time.unit", "1 of a share", "s"),
    ("metrics.host_time.part_of", "host", "metrics.host_time.part_of", "in s", "host"),
    ("cases.small.grid", "fulll", "cases.small.grid", "'default' or 'full'", "'fulll'"),
    (PAYLOAD, "rows - 2", PAYLOAD, "at least 0", "-1"),
    (PAYLOAD, "row * 2", PAYLOAD, "'rows'] (row", "*"),
    (PAYLOAD, "rows // 0", PAYLOAD, "by zero", "//"),
    ("cases.small.rows", [True], "cases.small.rows.0", "whole number", "True"),
    ("cases.small.rows", [1, 1], "cases.small.rows", "differ", "[1, 1]"),
    ("cases.small.draw", ["a,b"], "cases.small.draw.0", "a name like", "'a,b'"),
    ("cases.large.rows", [2], "variants.first.cases", "once", "'rows=2,draw=once'"),
    ("cases.large.metrics", ["gpu"], "cases.large.metrics", "'host_time'", "'gpu'"),
    ("cases.spare", {"rows": [1], "payload_bytes": "x"}, "cases.spare.payload_bytes", "", "x"),
    ("variants", [], "variants", "at least 1 item", "[]"),
    ("variants.0.neds", [], "variants.first.neds", "'needs'", "'neds'"),
    ("variants.0.name", "First", "variants.First.name", "text like", "'First'"),
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
    ("variants.4.needs", [{"peers": 1}], "variants.kernel.needs.0", "<2 to 64>", "'peers': 1"),
    ("variants.1.link", {"reads": "copy_engine", "warps": 1}, LINK, "for copy_engine", "['warps']"),
    ("variants.1.link", WARP | {"row_bytes": "rows - 1"}, f"{LINK}.row_bytes", "at least 1", "0"),
    ("variants.1.link", WARP | {"row_bytes": 16, "layout": "draw"}, f"{LINK}.layout", "", "'once'"),
    ("claims.1", {"id": "it", "says": "So.", "untested": "so"}, "claims", "every entry once", "it"),
    ("claims.0.all", [SPEEDUP], "claims.it", "exactly one of test, all and untested", "all"),
    ("claims.0", {"id": "it", "says": "So."}, "claims.it", "exactly one of test", "[]"),
    ("claims.1.all.1", GONE, "claims.both", "two comparisons or more under all", "1"),
    ("claims.0.ours", "perhaps", "claims.it.ours", "boolean", "perhaps"),
    ("claims.0.published", {"value": 1, "unit": "s"}, "claims.it.published.unit", "'1'", "'s'"),
    *(
        (f"claims.{claim}", SPEEDUP | changes, f"claims.{place}{field}", expected, got)
        for claim, place in (("0.test", "it.test"), ("1.all.1", "both.all.1"))
        for changes, field, expected, got in (
            ({"kind": "speed"}, ".kind", "'speedup'", "speed"),
            ({"of": "gone"}, ": of, over", "one of ['first'", "gone"),
            ({"over": "first"}, ": of, over", "every entry once", "first"),
            ({"case": "rows=9"}, "", "cases that first has", "rows=9"),
            ({"metric": "gone"}, ".metric", "['host_time'", "gone"),
            ({"limits": 3}, ".limits", "such as 'limit'", "limits"),
            ({"by": "bytes"}, ".by", "'time' or 'rate'", "bytes"),
            ({"at_most": 3}, "", "exactly one of ['at_least'", "['at_least', 'at_most']"),
            ({"at_least": 0}, ".at_least", "greater than 0", "0"),
            ({"counter": "a__b.sum"}, "", "['of', 'over'] and of ['by', 'metric']", "counter"),
        )
    ),
    ("claims.0.test", BETWEEN, "claims.it.test", "cases that first has", "gone"),
    ("claims.0.test", BETWEEN | {"over_case": CASE}, "claims.it.test: cases", "once", CASE),
    ("claims.0.test", NEAR, "claims.it.test", "cases that first has", "x=9"),
    ("claims.0.test", UNITS, "claims.it.test", "no bound", "['at_least']"),
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


def test_a_study_that_cannot_be_parsed_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(HotpathError, match=r"study\.yaml: cannot be read"):
        load_study(tmp_path / "study.yaml")
    twice = "title: One\nbase: &base {rows: 1}\nmore: {<<: *base, rows: 2}\ntitle: Another\n"
    for text, message in (
        (b"title: it\nidea: colon: colon", "mapping values are not .* in line 2, column 12$"),
        ("title: Größe".encode("latin-1"), ""),
        (twice.encode(), "expected every key once, got 'title' again in line 4, column 1$"),
    ):
        (tmp_path / "study.yaml").write_bytes(text)
        with pytest.raises(HotpathError, match=rf"study\.yaml: not valid YAML: {message}"):
            load_study(tmp_path / "study.yaml")


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("kernels/Host-Sum", r"the folder of a study: expected a name like .*, got 'Host-Sum'"),
        ("other/host_sum", "the folders of studies: expected every entry once, got 'host_sum'"),
    ],
)
def test_invalid_folder_name_of_a_study_is_rejected(
    tmp_path: Path, folder: str, message: str
) -> None:
    for each in ("kernels/host_sum", folder):
        (tmp_path / each).mkdir(parents=True)
        (tmp_path / each / "study.yaml").touch()
    with pytest.raises(FieldError, match=message):
        find_study("host_sum", tmp_path)


def test_studies_are_found_in_any_folder_and_name_each_other(tmp_path: Path) -> None:
    shutil.copytree(SYNTHETIC / "kernels", tmp_path / "kernels")
    shutil.move(tmp_path / "kernels" / "copy", tmp_path / "elsewhere" / "copy")
    for top in (*NO_STUDIES, ".hidden", "kernels/deeper"):
        (tmp_path / top / "no_study").mkdir(parents=True)
        (tmp_path / top / "no_study" / "study.yaml").touch()
    assert [*discover(tmp_path)] == [*discover(SYNTHETIC)]
    described = tmp_path / "elsewhere" / "copy" / "study.yaml"
    text = described.read_text()
    for study, variant, field in (("cpy", "v1", "study"), ("calls", "v9", "variant")):
        limit = json.dumps({"study": study, "variant": variant})
        described.write_text(f"limit: {limit}\n{text}")
        with pytest.raises(FieldError, match=rf"^copy/study\.yaml: limit\.{field}: expected one"):
            discover(tmp_path)
    (tmp_path / "kernels" / "calls" / "study.yaml").write_text("title: [")
    assert find_study("copy", tmp_path).folder == described.parent
    with pytest.raises(FieldError, match=r"^study: expected one of \['calls', .*got 'cpy'$"):
        find_study("cpy", tmp_path)
