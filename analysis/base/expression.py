"""Arithmetic of whole numbers in study.yaml: names, + - * // and parentheses, nothing else."""

import ast
import operator
from collections.abc import Callable, Mapping
from functools import cache

from analysis.base.errors import FieldError

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_parsed = cache(lambda text: ast.parse(text, mode="eval").body)


def evaluate(
    expression: str | int, names: Mapping[str, object], field: str = "payload_bytes", least: int = 0
) -> int:
    """The value of the expression in a field; FieldError if it is invalid or below `least`."""
    try:
        value = _value(_parsed(str(expression)), names)
    except (SyntaxError, ValueError, ZeroDivisionError) as error:
        expected = f"whole-number arithmetic of {sorted(names)} ({error})"
        raise FieldError(field, expected, expression) from error
    if value < least:
        raise FieldError(field, f"a number of at least {least}", value)
    return value


def _value(node: ast.expr, names: Mapping[str, object]) -> int:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if isinstance(value := names.get(name), int):
            return value
        case ast.BinOp(left=left, op=op, right=right) if compute := _OPERATORS.get(type(op)):
            return compute(_value(left, names), _value(right, names))
    raise ValueError(f"{ast.unparse(node)} is no whole number and no arithmetic of some")
