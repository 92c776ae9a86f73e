"""Whole sites from missing, stale, skipped or rejected results."""

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from analysis.base.errors import HotpathError
from analysis.results.collect import collect
from analysis.site.charts import COMMON
from analysis.site.facts.inputs import SAMPLE_TYPES, load_inputs
from analysis.site.pages.staging import SAMPLES
from analysis.study import discover
from tests.roots import build, draw_and_build, make_root, rows_without_value, text_of, write_tables
from tests.synthetic import RUN, files_of, name_of, samples_of, write_machine, write_run


def test_site_without_results_and_with_a_study_missing(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    shutil.rmtree(root / "kernels" / "calls")
    (root / "docs" / "studies" / "copy.md").unlink()
    site = build(root)
    calls = text_of(site / "studies" / "calls" / "index.html")
    assert "expected a study of this repository" in calls
    assert not (site / "studies" / "copy").exists()
    for name, begins in (("summary", "machine,study,variant,case"), ("claim_parts", "study,claim")):
        assert (site / "data" / f"{name}.csv").read_text().startswith(begins)


def test_site_shows_stale_skipped_failed_and_rejected_results(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study, results = discover(root)["copy"], root / "results"
    v0, v1, v2, v3, v4 = study.with_role("step")
    write_machine(results, "whole-box", study, variants=[v0, v1, v2])
    write_machine(results, "torn-box", study, variants=[v0])
    note = {"round": 2, "why": ["others kept 3.0 cores busy"]}
    for day in range(2, 5):
        run = f"2026-01-0{day}T00:00:00Z"
        made = samples_of(study, v1, run=run)
        jumping = [replace(one, value=(one.value or 0) * (6 if day == 4 else 1)) for one in made]
        write_run(results, "whole-box", study, jumping, disturbed=[note])
    skipped = rows_without_value(study, v3, "skipped", "needs sm_999 <or later>")
    failed = rows_without_value(study, v4, "failed", "illegal address")  # in one round of several
    failed += [one for one in samples_of(study, v4, rounds=8) if one.round]
    write_run(results, "whole-box", study, [*skipped, *failed])
    (torn,) = files_of(results, "torn-box", "copy")
    torn.write_text(torn.read_text() + "\n")
    v2.path.write_text(v2.path.read_text() + "\nint later_than_the_results;\n")
    site = build(root)
    home, page, machines, of_v1, of_v2 = (
        text_of(site / name)
        for name in (
            *("index.html", "studies/copy/index.html", "machines/index.html"),
            *(f"evidence/copy/{one.name}.html" for one in (v1, v2)),
        )
    )
    left_out = rf"torn-box/copy/{torn.stem}\.json is left out: .*/{torn.name}: checksum: expected"
    assert re.search(left_out, home) and "torn-box" not in page
    assert "disturbed in 3 of 32 rounds" in of_v1 and "1 of 4 runs outside" in of_v1
    assert "3: others kept 3.0 cores busy" in machines and "stale" in of_v2
    names = ["machine", *SAMPLE_TYPES]
    offered = duckdb.read_parquet(str(site / "data" / SAMPLES)).df()[names]
    read = collect(results, {"copy": study}).samples[names]
    assert {"skipped", "failed", "ok"} == {*offered["status"]}
    offered, read = (one.sort_values(names, ignore_index=True) for one in (offered, read))
    pd.testing.assert_frame_equal(offered, read, check_dtype=False)
    assert f"skipped: needs sm_999 &lt;or later&gt; 1 variant {v3.name} : all" in page
    assert f"failed: illegal address 1 variant {v4.name} : all" in page
    states = rows_of(site / "charts" / "copy" / "steps.json").groupby("variant")["state"].agg(set)
    assert states[v2.name] == {"stale", "published"}
    assert states[v3.name] == {"skipped", "published"}
    assert states[v4.name] == {"failed", "published"}
    assert states["library"] == {"not measured"}
    assert (site / "data" / "whole-box" / "copy" / f"{name_of(RUN)}.csv").exists()
    assert not (site / "data" / "torn-box").exists()


def rows_of(chart: Path) -> pd.DataFrame:
    """All rows of a chart."""
    return pd.DataFrame(json.loads(chart.read_text())["data"]["values"])


LINE = "docs/studies/calls.md: line 7"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with one study, its results and tables, and a site that was built before."""
    root = make_root(tmp_path_factory.mktemp("measured"))
    for name in ("copy", "strides"):
        shutil.rmtree(root / "kernels" / name)
        (root / "docs" / "studies" / f"{name}.md").unlink()
    study = discover(root)["calls"]
    write_machine(root / "results", "box", study)
    write_tables(root / "results", {"calls": study}, root / "build")
    (root / "site").mkdir()
    (root / "site" / "index.html").write_text("the site of before")
    return root


@pytest.mark.parametrize(
    ("slip", "message"),
    [
        ("{{ chart('st', '') }}", f"{LINE}: chart: expected one of {sorted(COMMON)}, got 'st'"),
        ("{{ no_macro() }}", f"{LINE}: 'no_macro' is undefined"),
        ("[there](nowhere.md)", "Doc file 'studies/calls.md' contains a link 'nowhere.md', but "),
    ],
)
def test_a_mistake_has_a_place_and_keeps_the_site(measured: Path, slip: str, message: str) -> None:
    page = measured / "docs" / "studies" / "calls.md"
    page.write_text(f"---\nsearch: {{}}\n---\n\n# Calls\n\n{slip}\n")
    with pytest.raises(HotpathError, match=f"^the site was not built: {re.escape(message)}"):
        draw_and_build(measured)
    assert [path.name for path in (measured / "site").iterdir()] == ["index.html"]


def test_tables_without_results_name_the_command_that_makes_them(measured: Path) -> None:
    with pytest.raises(HotpathError, match=r"build: tables of .*box, but .*/none has no res"):
        load_inputs(measured / "build", measured / "none", discover(measured))


@pytest.mark.parametrize("name", ["build/report", ""])
def test_unwritable_folder_is_reported_first(
    measured: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """`build/report` has the pages, and the site is made beside the one before."""
    folder, access = measured / name, os.access
    folder.mkdir(exist_ok=True)
    monkeypatch.setattr(os, "access", lambda path, mode: path != folder and access(path, mode))
    made = [measured / "site", measured / "build" / "report"]
    before = [sorted(place.rglob("*")) for place in made]
    with pytest.raises(HotpathError, match=f"^{re.escape(str(folder))}: cannot be written to"):
        draw_and_build(measured)
    assert [sorted(place.rglob("*")) for place in made] == before
