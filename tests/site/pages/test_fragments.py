"""Evidence that is folded into pages."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from markupsafe import Markup

from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.fragments import Place
from analysis.site.pages.variants import SMOKE, sections


def test_folded_section_is_a_separate_page(tmp_path: Path) -> None:
    place = Place(tmp_path, "../../")
    content = Markup("<p>it</p>")
    fold = place.folded("evidence/s/v/source.html", "a <b>", "of <v>", content, anchor='v"-source')
    assert '<summary><a href="../../evidence/s/v/source.html">a &lt;b&gt;</a></summary>' in fold
    assert 'id="v&#34;-source"' in fold and "it" not in fold
    page = (tmp_path / "evidence" / "s" / "v" / "source.html").read_text()
    assert "<title>of &lt;v&gt;</title>" in page
    assert 'href="../../../assets/fragment.css"' in page
    assert "<main><p>it</p></main>" in page


def test_each_variant_has_its_evidence_and_the_command_that_measures_it(
    measured: StudyFacts, tmp_path: Path
) -> None:
    page = sections(measured, Place(tmp_path, "../../"), "step")
    for variant in measured.study.with_role("step"):
        target = f"build/measured/{measured.study.name}/{variant.name}"
        assert f"<code data-copy>snakemake --cores 8 -f {target}</code>" in page
        source = tmp_path / "evidence" / measured.study.name / variant.name / "source.html"
        code = re.sub("<[^>]+>", "", source.read_text())
        assert variant.path.read_text().splitlines()[0] in code


def test_smoke_page_measures_again_in_the_smoke_grid(measured: StudyFacts, tmp_path: Path) -> None:
    inputs = replace(measured.inputs, results=SMOKE / "results")
    page = sections(replace(measured, inputs=inputs), Place(tmp_path, "../../"), "step")
    for variant in measured.study.with_role("step"):
        target = f"build/smoke/measured/{measured.study.name}/{variant.name}"
        assert f"snakemake --cores 8 --config grid=smoke -f {target}</code>" in page
