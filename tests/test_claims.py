"""Claims of a write-up: every kind of comparison both ways, and what leaves a claim untested."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from analysis.claims import KINDS
from analysis.errors import FieldError
from analysis.report.inputs import load_inputs
from analysis.report.ledger import claims_of, ledger
from analysis.report.points import Context
from analysis.results.claims import CLAIM_COLUMNS, FIGURES, Figure, claims_table, judge, together
from analysis.results.collect import collect
from analysis.results.samples import Sample
from analysis.results.store import add_run
from analysis.schema import SCHEMAS, read_yaml
from analysis.study import Case, Study, Variant, load_study
from tests.synthetic import provenance_of, samples_of

CASE = "rows=1000000"
ROW_BYTES = 64
OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"

SECONDS = {"slow": 8e-3, "fast": 2e-3, "wide": 2e-3, "host": 4e-3, "limit": 1e-3}
"""By variant; `wide` has rows of twice the size, so twice the rate of `fast`."""

PUBLISHED = """variant,case,metric,printed,unit_printed,unit_meant,source,note
slow,rows=1000000,gpu_time,8.0000,ms,ms,Notes,mean
slow,rows=1000000,throughput,7.45,GB/s,GiB/s,Notes,bytes divided by 1024^3
fast,rows=1000000,gpu_time,2.0000,ms,ms,Notes,mean
fast,rows=1000000,throughput,29.80,GB/s,GiB/s,Notes,bytes divided by 1024^3
"""


def describe(*claims: Mapping[str, Any]) -> dict[str, Any]:
    variant = {"role": "step", "title": "T", "cases": ["only"]}
    return {
        "title": "Copy",
        "question": "How fast?",
        "budget_s": 5,
        "constants": {"row_bytes": ROW_BYTES},
        "metrics": {
            "gpu_time": {"unit": "s", "label": "device time"},
            "host_time": {"unit": "s", "label": "host time"},
            "sms_used": {"unit": "1", "label": "SMs"},
        },
        "cases": {
            "only": {"rows": [1_000_000], "payload_bytes": "rows * row_bytes"},
            "other": {"rows": [2], "payload_bytes": "rows * row_bytes"},
        },
        "headline": {"rows": 1_000_000},
        "variants": [
            {**variant, "name": "slow", "cases": ["only", "other"]},
            {**variant, "name": "fast"},
            {**variant, "name": "wide", "constants": {"row_bytes": 2 * ROW_BYTES}},
            {**variant, "name": "host", "host_work": True},
            {**variant, "name": "limit", "role": "ceiling"},
        ],
        **({"claims": list(claims)} if claims else {}),
    }


def write_study(root: Path, *claims: Mapping[str, Any]) -> Study:
    folder = root / "copy"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.yaml").write_text(yaml.safe_dump(describe(*claims), sort_keys=False))
    for name in SECONDS:
        (folder / f"{name}.py").touch()
    return load_study(folder / "study.yaml")


def claim(**test: Any) -> dict[str, Any]:
    return {"id": "it", "says": "It is so.", "test": test}


def measure(
    results: Path,
    study: Study,
    seconds: Mapping[str, float] = SECONDS,
    *,
    sms: int = 16,
    noise: float = 1e-4,
    rounds: int = 8,
    run: str = NEW,
    machine: str = "box",
) -> None:
    """Samples of the variants in `seconds`, `sms_used` among them; gpu_time and host_time alike."""

    def time(variant: Variant, case: Case, metric: str) -> float:
        return seconds[variant.name]

    (results / machine).mkdir(parents=True, exist_ok=True)
    (results / machine / "machine.json").write_text('{"gpu": null}')
    for name in seconds:
        variant = study.variant(name)
        own = samples_of(study, variant, seconds=time, noise=noise, rounds=rounds, run=run)
        counts = [
            replace(sample, metric="sms_used", unit="1", value=float(sms))
            for sample in own
            if sample.metric == "gpu_time"
        ]
        add_samples(results, study, name, [*own, *counts], run, machine)


def add_samples(
    results: Path, study: Study, name: str, samples: list[Sample], run: str, machine: str = "box"
) -> None:
    provenance = provenance_of(study, study.variant(name), run=run)
    add_run(results, machine, study.name, name, samples, provenance)


def publish(results: Path, text: str = PUBLISHED) -> None:
    (results / "published").mkdir(parents=True, exist_ok=True)
    (results / "published" / "copy.csv").write_text(text)


NO_MODEL = pd.DataFrame(columns=["machine", "study", "variant", "case", "metric", "predicted"])


def rows_of(results: Path, study: Study, model: pd.DataFrame = NO_MODEL) -> list[dict[str, Any]]:
    studies = {study.name: study}
    table = claims_table(collect(results, studies).samples, studies, results, model)
    assert list(table.columns) == CLAIM_COLUMNS
    rows: list[dict[str, Any]] = table.to_dict("records")
    return rows


def verdict_on(tmp_path: Path, entry: Mapping[str, Any], **measured: Any) -> dict[str, Any]:
    """The one row of claims.csv for one claim on one machine."""
    study = write_study(tmp_path, entry)
    results = tmp_path / "results"
    publish(results)
    measure(results, study, **measured)
    (row,) = rows_of(results, study)
    return row


@pytest.mark.parametrize(
    ("test", "verdict", "measured"),
    [
        ({"kind": "speedup", "of": "fast", "over": "slow", "at_least": 3.9}, "holds", 4.0),
        ({"kind": "speedup", "of": "fast", "over": "slow", "at_least": 4.1}, "does not hold", 4.0),
        ({"kind": "speedup", "of": "fast", "over": "slow", "at_most": 4.1}, "holds", 4.0),
        ({"kind": "speedup", "of": "fast", "over": "slow", "at_most": 3.9}, "does not hold", 4.0),
        ({"kind": "speedup", "of": "fast", "over": "slow", "within": 0.01}, "holds", 4.0),
        ({"kind": "speedup", "of": "wide", "over": "fast", "at_least": 1.5}, "does not hold", 1.0),
        (
            {"kind": "speedup", "of": "wide", "over": "fast", "by": "rate", "at_least": 1.5},
            "holds",
            2.0,
        ),
        ({"kind": "speedup", "of": "host", "over": "slow", "at_least": 1.9}, "holds", 2.0),
        ({"kind": "share", "of": "fast", "over": "limit", "at_least": 0.4}, "holds", 0.5),
        ({"kind": "share", "of": "fast", "over": "limit", "at_least": 0.6}, "does not hold", 0.5),
        ({"kind": "share", "of": "wide", "over": "limit", "at_least": 0.9}, "holds", 1.0),
        ({"kind": "figure", "of": "fast", "metric": "sms_used", "at_most": 16}, "holds", 16.0),
        (
            {"kind": "figure", "of": "fast", "metric": "sms_used", "at_most": 15},
            "does not hold",
            16.0,
        ),
        ({"kind": "figure", "of": "slow", "metric": "gpu_time", "within": 0.01}, "holds", 8e-3),
    ],
)
def test_each_comparison_both_ways(
    tmp_path: Path, test: dict[str, Any], verdict: str, measured: float
) -> None:
    row = verdict_on(tmp_path, claim(**test))
    assert (row["study"], row["claim"], row["machine"]) == ("copy", "it", "box")
    assert row["verdict"] == verdict, row["reason"]
    assert row["measured"] == pytest.approx(measured, rel=1e-3)
    assert row["ci_low"] <= row["measured"] <= row["ci_high"]
    assert row["case"] == CASE
    assert row["unit"] == ("s" if test.get("metric") == "gpu_time" else "1")


def test_a_claim_flips_when_the_data_do(tmp_path: Path) -> None:
    entry = claim(kind="speedup", of="fast", over="slow", within=0.2)
    assert verdict_on(tmp_path / "a", entry)["verdict"] == "holds"
    row = verdict_on(tmp_path / "b", entry, seconds=SECONDS | {"slow": 3e-3})
    assert row["verdict"] == "does not hold"
    assert row["published"] == pytest.approx(4.0)
    assert row["reason"] == "not within 20 % of the published: 3.2 to 4.8"


def test_the_figure_of_the_entry_goes_before_the_rows(tmp_path: Path) -> None:
    entry = claim(kind="speedup", of="fast", over="slow", within=0.1)
    row = verdict_on(tmp_path, entry | {"published": {"value": 9, "unit": "1"}})
    assert (row["published"], row["verdict"]) == (9.0, "does not hold")


def test_without_a_published_figure_within_says_nothing(tmp_path: Path) -> None:
    row = verdict_on(tmp_path, claim(kind="speedup", of="host", over="slow", within=0.1))
    assert row["verdict"] == "not tested"
    assert "no published figure" in row["reason"]


def test_an_interval_on_both_sides_decides_nothing(tmp_path: Path) -> None:
    entry = claim(kind="speedup", of="fast", over="wide", at_least=1.0)
    row = verdict_on(tmp_path, entry, noise=0.05)
    assert row["verdict"] == "not tested"
    assert row["reason"].startswith("the interval ")
    assert row["reason"].endswith("does not decide whether it is at least 1")


def test_the_ends_of_an_interval_decide() -> None:
    def said(low: float, high: float, bound: str, value: float, published: float = 10) -> str:
        return judge(Figure((low + high) / 2, low, high, published), bound, value).verdict

    assert said(1.0, 1.2, "at_least", 1.0) == "holds"
    assert said(0.9, 1.2, "at_least", 1.0) == "not tested"
    assert said(0.9, 0.99, "at_least", 1.0) == "does not hold"
    assert said(0.9, 1.0, "at_most", 1.0) == "holds"
    assert said(1.01, 1.2, "at_most", 1.0) == "does not hold"
    assert said(8.0, 9.1, "within", 0.1) == "holds"
    assert said(8.0, 8.9, "within", 0.1) == "does not hold"
    assert said(11.1, 12.0, "within", 0.1) == "does not hold"
    assert said(math.nan, math.nan, "at_least", 1.0) == "not tested"


def test_all_parts_must_hold(tmp_path: Path) -> None:
    parts = [
        {"kind": "speedup", "of": "fast", "over": "slow", "at_least": 3.9},
        {"kind": "figure", "of": "fast", "metric": "sms_used", "at_most": 16},
    ]
    entry = {"id": "it", "says": "Both.", "all": parts}
    assert verdict_on(tmp_path / "a", entry)["verdict"] == "holds"
    row = verdict_on(tmp_path / "b", entry, sms=132)
    assert row["verdict"] == "does not hold"
    # What decides comes first.
    first, second = row["reason"].split("; ")
    assert first == "fast sms_used: 132 (132 to 132), not at most 16"
    assert second.startswith("fast over slow: ") and second.endswith("), at least 3.9")
    assert math.isnan(row["measured"])


def test_one_part_that_fails_decides_though_another_is_unknown() -> None:
    assert together(["holds", "holds"]) == "holds"
    assert together(["holds", "not tested"]) == "not tested"
    assert together(["not tested", "does not hold"]) == "does not hold"


def test_units_of_the_published_rows(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="units", printed="GB/s", meant="GiB/s"))
    results = tmp_path / "results"
    assert [row["verdict"] for row in rows_of(results, study)] == ["not tested"]
    publish(results)
    (row,) = rows_of(results, study)
    assert (row["machine"], row["verdict"]) == ("published", "holds")
    assert row["measured"] == pytest.approx(2**30 / 1e9, rel=1e-3)
    assert row["reason"].endswith("in 2 if read in GiB/s and in 0 if read in GB/s, of 2 rows")
    publish(results, PUBLISHED.replace("7.45,GB", "8.00,GB"))
    (row,) = rows_of(results, study)
    assert row["verdict"] == "does not hold"


def test_a_printed_share_is_held_against_the_printed_time(tmp_path: Path) -> None:
    test = {"kind": "printed_share", "of": "fast", "limit": 64.0, "unit": "GB/s", "within": 0.01}
    study = write_study(tmp_path, claim(**test))
    results = tmp_path / "results"
    publish(results)
    (row,) = rows_of(results, study)
    assert (row["machine"], row["verdict"]) == ("published", "does not hold")
    assert row["published"] == pytest.approx(29.80 / 64)
    assert row["measured"] == pytest.approx(0.5)
    publish(results, PUBLISHED.replace("29.80", "32.00"))
    (row,) = rows_of(results, study)
    assert row["verdict"] == "holds"


def test_a_share_of_the_model(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="model_share", of="fast", at_least=0.97))
    results = tmp_path / "results"
    measure(results, study)
    (row,) = rows_of(results, study)
    assert (row["verdict"], row["reason"]) == ("not tested", "no model prediction")
    for predicted, verdict in ((1.99e-3, "holds"), (1.5e-3, "does not hold")):
        key = ["box", "copy", "fast", CASE, "gpu_time", predicted]
        model = pd.DataFrame([key], columns=NO_MODEL.columns)
        (row,) = rows_of(results, study, model)
        assert row["verdict"] == verdict
        assert row["measured"] == pytest.approx(predicted / 2e-3, rel=1e-3)


def test_what_is_skipped_stale_or_missing_is_not_tested(tmp_path: Path) -> None:
    entry = claim(kind="speedup", of="fast", over="slow", at_least=1.0)
    study = write_study(tmp_path, entry)
    results = tmp_path / "results"

    def reason() -> str:
        (row,) = rows_of(results, study)
        assert row["verdict"] == "not tested"
        return str(row["reason"])

    assert rows_of(results, study) == []
    measure(results, study, {"slow": 8e-3})
    assert reason() == "fast has not been measured in this case"
    samples = samples_of(study, study.variant("fast"), rounds=1, run=NEW)
    skipped = [
        replace(s, value=None, verified=0, status="skipped", reason="opt-in: set managed")
        for s in samples
    ]
    add_samples(results, study, "fast", skipped, NEW)
    assert reason() == "fast was skipped: opt-in: set managed"
    (results / "box" / "copy" / "fast.csv").unlink()
    measure(results, study, {"fast": 2e-3}, run=OLD)
    assert reason() == "fast and slow have not been measured in one run"
    measure(results, study, {"fast": 2e-3}, run=NEW)
    (row,) = rows_of(results, study)
    assert row["verdict"] == "holds"
    study.variant("fast").path.write_text("print('changed')\n")
    assert reason() == "the result of fast is stale"


def test_a_single_round_has_no_interval_to_decide(tmp_path: Path) -> None:
    row = verdict_on(
        tmp_path, claim(kind="speedup", of="fast", over="slow", at_least=1.0), rounds=1
    )
    assert row["verdict"] == "not tested"
    assert row["reason"] == "a single round gives no interval"


def test_unchecked_output_decides_nothing(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="speedup", of="fast", over="slow", at_least=1.0))
    results = tmp_path / "results"
    measure(results, study, {"slow": 8e-3})
    fast = [replace(s, verified=0) for s in samples_of(study, study.variant("fast"), run=NEW)]
    add_samples(results, study, "fast", fast, NEW)
    (row,) = rows_of(results, study)
    assert row["verdict"] == "not tested"
    assert row["reason"] == "the output of fast was not checked"


def test_the_reason_for_no_test_stands_on_every_machine(tmp_path: Path) -> None:
    study = write_study(tmp_path, {"id": "it", "says": "S", "untested": "needs two GPUs"})
    for machine in ("box", "other"):
        measure(tmp_path / "results", study, machine=machine)
    rows = rows_of(tmp_path / "results", study)
    assert [(row["machine"], row["verdict"], row["reason"]) for row in rows] == [
        ("box", "not tested", "needs two GPUs"),
        ("other", "not tested", "needs two GPUs"),
    ]


FEW_SMS = {"kind": "figure", "of": "fast", "metric": "sms_used"}
UNITS = {"kind": "units", "printed": "GB/s", "meant": "GiB/s"}
SPEEDUP = {"kind": "speedup", "of": "fast", "over": "slow", "at_least": 1}


@pytest.mark.parametrize(
    ("entry", "field", "expected"),
    [
        ({"test": SPEEDUP | {"kind": "speed"}}, "claims.0.test.kind", "one of ['speedup'"),
        ({"test": SPEEDUP | {"of": "gone"}}, "claims.it.test.of", "one of ['slow'"),
        ({"test": SPEEDUP | {"over": "gone"}}, "claims.it.test.over", "one of ['slow'"),
        ({"test": SPEEDUP | {"case": "rows=2"}}, "claims.it.test.case", "a case that fast has"),
        ({"test": SPEEDUP | {"metric": "gone"}}, "claims.it.test.metric", "['gpu_time'"),
        ({"test": SPEEDUP | {"limit": 3}}, "claims.it.test", "the keys ['of', 'over']"),
        ({"test": SPEEDUP | {"tolerance": 3}}, "claims.0.test", "one of the keys"),
        ({"test": SPEEDUP | {"by": "bytes"}}, "claims.0.test.by", "['time', 'rate']"),
        ({"test": SPEEDUP | {"at_most": 3}}, "claims.it.test", "exactly one of ['at_least'"),
        ({"test": SPEEDUP | {"at_least": 0}}, "claims.0.test.at_least", "above 0"),
        ({"test": {"kind": "speedup", "of": "fast", "at_least": 1}}, "claims.it.test", "the keys"),
        ({"test": {"kind": "figure", "of": "fast", "at_most": 1}}, "claims.it.test", "'metric'"),
        (
            {"test": {"kind": "units", "printed": "GB/s", "meant": "GiB/s", "at_least": 1}},
            "claims.it.test",
            "no bound",
        ),
        ({"all": [SPEEDUP, SPEEDUP | {"of": "gone"}]}, "claims.it.all.1.of", "one of ['slow'"),
        ({"all": [SPEEDUP]}, "claims.0.all", ""),
        ({}, "claims.it", "exactly one of test, all and untested"),
        ({"test": SPEEDUP, "untested": "why"}, "claims.it", "exactly one of test, all"),
        ({"untested": ""}, "claims.0.untested", "not empty"),
        (
            {"test": SPEEDUP, "published": {"value": 1, "unit": "s"}},
            "claims.it.published.unit",
            "'1'",
        ),
        ({"test": SPEEDUP, "published": {"value": 1}}, "claims.0.published", "the keys"),
        ({"test": SPEEDUP, "verdict": "holds"}, "claims.0", "one of the keys"),
    ],
)
def test_a_fault_in_a_claim_is_one_error(
    tmp_path: Path, entry: dict[str, Any], field: str, expected: str
) -> None:
    with pytest.raises(FieldError) as caught:
        write_study(tmp_path, {"id": "it", "says": "It is so."} | entry)
    assert caught.value.field == f"copy/study.yaml: {field}"
    assert expected in str(caught.value)


def test_two_claims_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FieldError, match="every entry once, got 'it'"):
        write_study(tmp_path, claim(**SPEEDUP), claim(**SPEEDUP))


def test_schema_and_code_know_the_same_kinds() -> None:
    schema = read_yaml(SCHEMAS / "study.schema.yaml")
    kinds = schema["$defs"]["comparison"]["properties"]["kind"]["enum"]
    assert set(kinds) == set(KINDS) == {*FIGURES, "units"}


def test_the_ledger_shows_claims_with_verdicts_and_samples(tmp_path: Path) -> None:
    study = write_study(
        tmp_path,
        claim(**SPEEDUP),
        {"id": "sms", "says": "Few <SMs>.", "test": {**FEW_SMS, "at_most": 15}},
        {"id": "units", "says": "GiB/s.", "test": UNITS},
        {"id": "later", "says": "Later.", "untested": "needs two GPUs"},
    )
    results = tmp_path / "results"
    publish(results)
    measure(results, study)
    page = ledger({"copy": Context(read(tmp_path, study), study)}, {}, "../")
    assert page.startswith("## Copy\n")
    assert "- On box: holds 1, does not hold 1, not tested 1." in page
    assert "- By the published rows alone: holds 1." in page
    assert "Few &lt;SMs&gt;." in page and "needs two GPUs" in page
    assert "4.00×" in page and 'hp-fails">does not hold<' in page
    assert '<a href="../data/#box-copy-fast"><code>fast</code></a>' in page


def test_of_many_parts_the_nearest_to_failing_is_in_view(tmp_path: Path) -> None:
    part = {"kind": "speedup", "of": "fast", "over": "slow"}
    bounds = [3.0, 3.9, 2.0, 1.0]
    other = {"kind": "figure", "of": "slow", "metric": "sms_used", "case": "rows=2", "at_most": 15}
    parts = [*({**part, "at_least": bound} for bound in bounds), other]
    study = write_study(tmp_path, {"id": "it", "says": "All.", "all": parts})
    measure(tmp_path / "results", study)
    page = claims_of(Context(read(tmp_path, study), study), "../")
    view, _, folded = page.partition("<summary>and 4 more</summary>")
    assert "slow sms_used in rows=2: 16 (16 to 16), not at most 15" in view
    assert re.findall(r"at least ([\d.]+)", folded) == ["3.9", "3", "2", "1"]
    study = write_study(tmp_path, {"id": "it", "says": "All.", "all": parts[:4]})
    assert "<summary>" not in claims_of(Context(read(tmp_path, study), study), "../")


def read(root: Path, study: Study) -> Any:
    """What the report reads, with claims.csv as the summary stage writes it."""
    studies = {study.name: study}
    samples = collect(root / "results", studies).samples
    (root / "build").mkdir(exist_ok=True)
    table = claims_table(samples, studies, root / "results", NO_MODEL)
    table.to_csv(root / "build" / "claims.csv", index=False)
    return load_inputs(root / "build", root / "results", root / "modules", studies)


def test_claims_are_listed_before_anything_is_measured(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(**SPEEDUP))
    page = claims_of(Context(read(tmp_path, study), study), "../")
    assert "no machine has been measured" in page
    none = replace(study, claims=())
    assert claims_of(Context(read(tmp_path, none), none), "../") == "This study tests no claims."
