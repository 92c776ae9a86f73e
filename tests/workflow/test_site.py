"""The pipeline keeps the site complete."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.workflow.pipeline import add_modules, copy_of_pipeline, succeed


def test_site_without_its_first_page_is_published_again(tmp_path: Path) -> None:
    copy = copy_of_pipeline(tmp_path / "hotpath")
    add_modules(copy)
    for other in ("copy", "strides"):
        shutil.rmtree(copy / "kernels" / other)
        (copy / "docs" / "studies" / f"{other}.md").unlink()
    shutil.rmtree(copy / "results")  # A missing folder counts as no results.
    page = copy / "site" / "index.html"
    succeed(copy)
    lines = (copy / "build" / "summary.csv").read_text().splitlines()
    assert any(line.startswith("test-box,calls,python,calls=100,host_time,s,") for line in lines)
    assert (copy / "build" / "refused.json").read_text().strip() == "{}"
    assert "Nothing to be done" in succeed(copy)
    page.unlink()
    succeed(copy)
    assert page.exists()
