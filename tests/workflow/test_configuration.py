"""What a run prints: one error for invalid settings, targets, folders and GPUs, and nothing starts;
few lines of progress, and each failure once."""

import re
from pathlib import Path

import pynvml
import pytest

from analysis import ROOT
from analysis.base.files import take
from tests.measure.studies import contents
from tests.workflow.pipeline import SETTINGS, copy_of_pipeline, snakemake, succeed

DRIVER = f"""
from types import SimpleNamespace

exec(open({pynvml.__file__!r}).read())


def unsupported(*arguments):
    raise NVMLError(NVML_ERROR_NOT_SUPPORTED)


globals().update({{name: unsupported for name in globals() if name.startswith("nvmlDevice")}})
nvmlInit = nvmlShutdown = lambda: None
nvmlDeviceGetCount = lambda: 4
nvmlDeviceGetHandleByIndex = lambda index: f"GPU {{index}}"
nvmlDeviceGetHandleByUUID = nvmlDeviceGetUUID = lambda name: name
nvmlDeviceGetPciInfo = lambda handle: SimpleNamespace(busId=f"00000000:0{{handle[-1]}}:00.0")
nvmlDeviceGetName = lambda handle: "Tesla V100"
"""
"""A module in front of the real one, whose GPUs answer nothing else."""
OLD = "nvmlDeviceGetCudaComputeCapability = lambda handle: (7, 0)\n"
LOST = "def nvmlDeviceGetHandleByIndex(index): raise NVMLError(NVML_ERROR_GPU_IS_LOST)\n"
LINE = "this GPU is sm_70: CUDA 13 cannot compile for it, nothing is measured here"
MEASURED = "build/measured"
ANY_MACHINE = SETTINGS[:1]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_pipeline(tmp_path_factory.mktemp("copy") / "hotpath")


def the_error(copy: Path, *targets: str, settings: tuple[str, ...] = SETTINGS) -> str:
    """The only line about an error."""
    done = snakemake(copy, *targets, settings=settings)
    assert done.returncode != 0 and "Traceback" not in done.stdout
    [line] = [line for line in done.stdout.splitlines() if "error" in line.lower()]
    return line


MISTAKES = [
    ("measure", "gird=smoke", "config: gird: expected a known key, such as 'grid', got"),
    ("measure", "gpu=99", "config: gpu: expected "),
    ("measure", "machine=file", "results/file: cannot be written to; use a copy that you"),
    ("mesure", "gpu=0", "target: expected one of build, measure, profile, site, summary, "),
    (f"{MEASURED}/calls/no", "gpu=0", "study calls: variant: expected one of ['python', "),
]


def test_a_mistake_is_one_error_and_starts_nothing(copy: Path) -> None:
    """A file in the place of a folder stands for a file system that is mounted read-only."""
    (copy / "results" / "file").touch()
    before = contents(copy / "build") | contents(copy / "results")
    for target, setting, expected in MISTAKES:
        line = the_error(copy, "-f", target, settings=(*SETTINGS, setting))
        assert line.startswith("error: ") and expected in line
        assert contents(copy / "build") | contents(copy / "results") == before
    (copy / "site").touch()
    assert f"error: {copy / 'site'}: cannot be written to; use a copy" in the_error(copy, "build")
    (copy / "site").unlink()


def test_a_second_run_refuses_a_checkout_in_use(copy: Path) -> None:
    (copy / ".snakemake").mkdir(exist_ok=True)
    lock = take(copy / ".snakemake" / "hotpath.lock", "the first run", lambda holder: None)
    expected = "error: this checkout is in use by the first run; wait until that has ended"
    assert the_error(copy, "build/cpu_cache.so") == expected
    lock.release()
    succeed(copy, "build/cpu_cache.so")


def test_a_gpu_that_cannot_be_measured_is_one_line(copy: Path) -> None:
    """An old one, and none without a name of the machine, leave the site of committed results."""
    driver = copy / "pynvml.py"  # in front of the real one
    driver.write_text(DRIVER + OLD)
    printed = succeed(copy, "--dry-run", "site", settings=ANY_MACHINE)
    assert printed.splitlines().count(LINE) == 1
    assert "\nreport\n" in printed and "Measuring" not in printed
    assert the_error(copy, "--dry-run", "measure", settings=ANY_MACHINE) == f"error: {LINE}"
    driver.write_text(DRIVER + LOST)
    error = the_error(copy, "--dry-run", "measure", settings=ANY_MACHINE)
    assert error == "error: GPU 0: GPU is lost"
    succeed(copy, "--dry-run", "build", settings=ANY_MACHINE)  # which opens no GPU
    driver.write_text(f"{DRIVER}nvmlDeviceGetCount = lambda: 0\n")
    printed = succeed(copy, "--dry-run", "site", settings=ANY_MACHINE)
    assert printed.count("no GPU was found and this machine has no name") == 1
    assert "Measuring" not in printed
    driver.unlink()


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
