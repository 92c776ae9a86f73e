"""Figures, ratios and verdicts within sentences of any page."""

from pathlib import Path
from typing import Any

import pytest

from analysis.base.errors import FieldError
from analysis.site.facts.inputs import Inputs
from analysis.site.pages.page import MACROS, Page
from tests.roots import make_inputs, make_root, settled, without_data
from tests.site.pages.conftest import page_in
from tests.synthetic import COPY, at_rates, write_machine


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """Two machines with one run each, on which `vectors` is twice as fast as `bytewise`."""
    root = make_root(tmp_path_factory.mktemp("inline"))
    speeds = at_rates({"bytewise": 1.0, "vectors": 2.0})
    for machine in ("box", "other-box"):
        write_machine(root / "results", machine, COPY, seconds=speeds, noise=1e-4)
    return make_inputs(root)


@pytest.fixture(scope="module")
def inputs(few: Inputs) -> Inputs:
    return settled(few)


def on(inputs: Inputs, *published: str) -> Page:
    return page_in(Path("nowhere"), inputs, *published)


def shown(name: str, page: Page, *arguments: str, **named: Any) -> str:
    return without_data(MACROS[name](page, *arguments, **named))


def changed(inputs: Inputs, table: str, **columns: Any) -> Inputs:
    """Inputs with other values in some columns of a table."""
    return inputs.with_tables(**{table: inputs.tables[table].assign(**columns)})


def test_a_figure_follows_the_samples_and_names_its_basis(few: Inputs, inputs: Inputs) -> None:
    figure = shown("figure", on(inputs, "box"), "vectors")
    assert ">2.00 GB/s<" in figure
    assert 'title="box; 95 % interval: ' in figure and "; 3 runs, 3 hosts; " in figure
    assert shown("runs", on(inputs, "box"), "vectors") == "3 runs, 3 hosts"
    assert 'href="../../data/?samples.case=' in figure and "#box-copy-vectors" in figure
    other = shown("figure", on(inputs, "other-box"), "vectors", as_time=True)
    assert 'title="other-box; ' in other and "s</a>" in other and "GB/s" not in other
    halved = changed(inputs, "summary", median=inputs.tables["summary"]["median"] / 2)
    assert ">4.00 GB/s<" in shown("figure", on(halved), "vectors")
    for weak, basis in (
        (changed(inputs, "summary", stale=1), "stale"),
        (changed(inputs, "summary", hosts=1), "3 runs, 1 host (too few for a headline)"),
        (few, "one run (too few for a headline)"),
    ):
        figure = shown("figure", on(weak, "box"), "vectors")
        assert f"; {basis}; " in figure and 'class="hp-figure hp-few"' in figure


def test_a_figure_with_a_wide_interval_is_that_interval(inputs: Inputs) -> None:
    low, high = (inputs.tables["summary"]["median"] * factor for factor in (0.334, 3.01))
    wide = shown("figure", on(changed(inputs, "summary", ci_low=low, ci_high=high)), "vectors")
    assert ">0.67 to 6.0 GB/s<" in wide and ", median 2.00 GB/s; 3 runs, 3 hosts" in wide


def test_what_a_macro_cannot_give_stops_the_build_unless_it_is_a_trial(inputs: Inputs) -> None:
    names = ("summary", "ratios", "claims")
    none = inputs.with_tables(**{name: inputs.tables[name].iloc[:0] for name in names})
    for call in (
        ("figure", "vectors"),
        ("ratio", "vectors", "bytewise"),
        ("measured", "vectors"),
        ("table", "steps"),
        ("metrics",),
    ):
        with pytest.raises(FieldError, match="copy: expected a "):
            shown(call[0], on(none, "box"), *call[1:])
        assert 'class="hp-gap"' in shown(call[0], on(none), *call[1:])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("figure", "vector"), "variant: expected one of"),
        (("figure", "vectors", "no_such_metric"), "metric: expected one of"),
        (("verdict", "vector"), "claim: expected one of"),
        (("table", "none"), r"table: expected one of .*'steps'"),
        (("constant", "NONE"), "constant: expected one of"),
        (("drawing", "none", ""), "drawing: expected files none.wide.svg"),
        (("figure", "vectors", "", {"no_such_key": 1}), "case of vectors: expected one of"),
        (("ratio", "bytewise", "vectors"), r"bytewise over vectors .* the faster variant first"),
    ],
)
def test_an_error_of_an_author_is_named(inputs: Inputs, call: Any, message: str) -> None:
    name, *arguments = call
    named = arguments.pop() if isinstance(arguments[-1], dict) else {}
    with pytest.raises(FieldError, match=message):
        shown(name, on(inputs, "box"), *arguments, **named)


def test_verdicts_are_one_mark_that_says_whether_machines_agree(inputs: Inputs) -> None:
    mark = shown("verdict", on(inputs, "box"), "vectors")
    assert mark.endswith(">✓</a>") and 'href="../../ledger/#copy-vectors"' in mark
    failed = on(changed(inputs, "claims", verdict="does not hold"), "box")
    assert shown("verdict", failed, "vectors").count(">✗</a>") == 1
    for other, sign in (("does not hold", "≠"), ("not tested", "✓")):
        on_both = ["holds" if one == "box" else other for one in inputs.tables["claims"]["machine"]]
        differing = changed(inputs, "claims", verdict=on_both, judged=float("nan"))
        mark = shown("verdict", on(differing, "box"), "vectors")
        assert mark.endswith(f">{sign}</a>") and mark.count("<a ") == 1
        assert "box: holds" in mark and f"other-box: {other}" in mark


def test_a_ratio_and_the_figure_of_a_claim_are_in_words(inputs: Inputs) -> None:
    assert ">2.0 times</a>" in shown("ratio", on(inputs, "box"), "vectors", "bytewise")
    figure = shown("measured", on(inputs, "box"), "vectors")
    assert 'href="../../ledger/#copy-vectors" title="box; 95 % interval: 2.00 to 2.00; ' in figure
    assert figure.endswith(">2.00×</a>")
