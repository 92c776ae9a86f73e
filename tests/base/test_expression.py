"""Arithmetic of whole numbers as in Python, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from analysis.base.expression import evaluate

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


@given(ARITHMETIC)
def test_expressions_agree_with_python(expression: str) -> None:
    try:
        expected = eval(expression, {"__builtins__": {}}, dict(NAMES))
    except ZeroDivisionError:
        return
    assert evaluate(expression, NAMES, "it", -(10**99)) == expected


@given(left=ARITHMETIC, right=ARITHMETIC, refused=st.sampled_from(REFUSED))
def test_other_expressions_are_rejected(left: str, right: str, refused: str) -> None:
    # Zero times anything is rejected, too: the form is invalid, whatever the value.
    with pytest.raises(FieldError, match=r"^it: expected whole-number arithmetic of"):
        evaluate(refused.format(left, right), NAMES, "it", 0)
