"""Points held back from the fit: those beyond its range, and a third of the rest."""

from __future__ import annotations

from dataclasses import replace

from analysis.study import Case
from analysis.study.calibration import FITTED, INSIDE, OUTSIDE, held_back
from tests.linked import CALIBRATION, GATHER

ROWS = CALIBRATION.variant("sm_rows")
HELD = {
    case.id: (case, use)
    for variant in CALIBRATION.variants
    for case, use in zip(variant.cases, held_back(CALIBRATION, variant), strict=True)
}


def values_of(key: str, *uses: str) -> set[int]:
    return {case.number(key) for case, use in HELD.values() if use in uses and key in case.values}


def test_ends_of_every_sweep_are_outside_the_fit() -> None:
    for key in ("row_bytes", "bytes"):
        fitted, outside = values_of(key, FITTED, INSIDE), values_of(key, OUTSIDE)
        assert min(outside) < min(fitted) and max(fitted) < max(outside), key
    assert max(values_of("stride_bytes", FITTED, INSIDE)) < max(values_of("stride_bytes", OUTSIDE))
    assert min(values_of("rows", OUTSIDE)) < min(values_of("rows", FITTED, INSIDE))


def test_a_third_of_the_others_is_held_back() -> None:
    cases = tuple(Case({"n": n}, 1, "default") for n in range(9))
    study = replace(CALIBRATION, fitted_range={})
    uses = held_back(study, replace(ROWS, cases=cases))
    assert [index for index, use in enumerate(uses) if use == INSIDE] == [2, 4, 6]
    beyond = held_back(replace(study, fitted_range={"n": (1, 7)}), replace(ROWS, cases=cases))
    assert beyond == [OUTSIDE, *uses[:7], OUTSIDE]


def test_only_calibrations_hold_cases_back() -> None:
    assert {use for v in GATHER.variants for use in held_back(GATHER, v)} == {FITTED}
