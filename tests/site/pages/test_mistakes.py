"""The line of a mistake in a page."""

from __future__ import annotations

from types import SimpleNamespace

import jinja2
import pytest

from analysis.base.errors import FieldError
from analysis.site.pages.ahead import in_page


def fail() -> str:
    raise FieldError("chart", "one of ['steps']", "step")


@pytest.mark.parametrize(
    ("slip", "message"),
    [
        ("{{ unknown() }}", "'unknown' is undefined"),
        ("{{ fail( }}", "unexpected '}', expected ')'"),
        ("{{ fail() }}", "chart: expected one of ['steps'], got 'step'"),
        ("{{ {}.pop('NONE') }}", "KeyError('NONE')"),
    ],
)
def test_message_names_the_line_of_the_file(slip: str, message: str) -> None:
    text = f"# Calls\n\n{slip}\n"
    file = SimpleNamespace(src_path="studies/calls.md", content_string=f"---\na: 1\n---\n{text}")
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    with pytest.raises(Exception) as caught:
        environment.from_string(text).render(fail=fail)
    page = SimpleNamespace(file=file, markdown=text)
    assert in_page(page, caught.value) == f"docs/studies/calls.md: line 6: {message}"
