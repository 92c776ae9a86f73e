"""What a run prints: few lines, and each failure once."""

from __future__ import annotations

import re
from pathlib import Path

from analysis import ROOT
from tests.workflow.pipeline import snakemake, succeed

WORKFLOW = f"""
from pathlib import Path
from snakemake.logging import logger
TARGETS, TABLES = ["all", "fails"], "build"
include: "{ROOT}/workflow/rules/messages.smk"
rule all:
    input: [f"{{number}}.made" for number in range(35)]
rule make:
    output: touch("{{number}}.made")
rule fails:
    output: "{{name}}.failed"
    log: "{{name}}.log"
    shell: "seq 100 > {{log}}; false"
"""
"""36 quick jobs and one that fails, without a profile."""


def test_ten_lines_report_the_jobs_and_one_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(WORKFLOW)
    listed = re.findall(r"^make (\d+)$", succeed(tmp_path, "--dry-run"), re.MULTILINE)
    assert sorted(map(int, listed)) == list(range(35))
    lines = succeed(tmp_path).splitlines()
    done = [line for line in lines if line.endswith(" of 36 jobs done")]
    assert len(done) == 10 and done[-1] == "36 of 36 jobs done"
    assert len(lines) < 15, lines

    failed = snakemake(tmp_path, "a.failed")
    lines = failed.stdout.splitlines()
    first = lines.index("failed: fails a")
    assert lines[first + 1 : first + 41] == [str(number) for number in range(61, 101)]
    assert failed.returncode == 1 and len(lines) < 47
    everything = snakemake(tmp_path, "a.failed", "--verbose").stdout
    assert "Error in rule fails" in everything and "CalledProcessError" in everything
    assert snakemake(tmp_path, "fail").stdout.splitlines()[-1] == (
        "error: target: expected one of all, fails, build/measured/STUDY/VARIANT, or a file that a"
        " rule makes, got 'fail'"
    )
