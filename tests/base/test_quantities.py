"""Numbers with their units, as pages show them, and the arithmetic of study.yaml."""

import math
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from analysis.base.expression import evaluate
from analysis.base.quantities import quantity, quantity_interval

QUANTITIES: Final = {
    (3.5921e-3, "s"): "3.592 ms",
    (2.5e-8, "s"): "25.00 ns",
    (math.nan, "s"): "",
    (0, "B"): "0 B",
    (132.0, "1"): "132",
    (1.0991142, "1"): "1.099",
    (4.7e10, "B/s"): "47.0 GB/s",
    (1.003, "x"): "1.003×",
    (3.912, "x"): "3.91×",
    (0.0000315, "%"): "0.003 %",
    (0.0123, "%"): "1.2 %",
    (0.877, "%"): "88 %",
}
INTERVALS: Final = {
    (290.2e-9, 77.92e-9, 1040e-9, "s"): "78 to 1040 ns",
    (0, 0, 25561.9, "B"): "0 to 26 kB",
    (995e-9, 990e-9, 1.012e-6, "s"): "990.0 to 1012 ns",
    (1.25, 0.5123, 3.0, "1"): "0.51 to 3",
    (0.0, -1.2e-9, 1.3e-9, "s"): "-1.2 to 1.3 ns",
    (1.0, math.nan, 1.0, "s"): "",
    (1, 0.986, 6.64, "x"): "0.986 to 6.6",
    (0.5, 0.03, 1.2, "%"): "3.0 % to 100 %",
}


def test_figures_and_intervals_have_a_prefix_and_the_digits_that_they_support() -> None:
    assert {figure: quantity(*figure) for figure in QUANTITIES} == QUANTITIES
    assert {figures: quantity_interval(*figures) for figures in INTERVALS} == INTERVALS


NAMES = {"bs": 7, "topk": 0, "draw": "once"}
ARITHMETIC = st.recursive(
    st.integers(min_value=0, max_value=10**6).map(str) | st.sampled_from(["bs", "topk"]),
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


@given(left=ARITHMETIC, right=ARITHMETIC, refused=st.sampled_from(REFUSED))
def test_expressions_agree_with_python_or_are_rejected(left: str, right: str, refused: str) -> None:
    # Zero times anything is rejected, too: the form is invalid, whatever the value.
    with pytest.raises(FieldError, match=r"^it: expected whole-number arithmetic of"):
        evaluate(refused.format(left, right), NAMES, "it", 0)
    try:
        expected = eval(left, {"__builtins__": {}}, dict(NAMES))
    except ZeroDivisionError:
        return
    assert evaluate(left, NAMES, "it", -(10**99)) == expected
