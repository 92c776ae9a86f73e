"""After any process of a measurement is killed, the same command completes the measurement."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from analysis.measure.machine import FOLDER_VARIABLE
from tests.synthetic import assert_measured_once
from tests.waiting import DEADLINE_S, wait_for
from tests.workflow.pipeline import ROUNDS, SETTINGS, add_modules, copy_of_pipeline

SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
COMMANDS = {
    "snakemake": ["snakemake", "--cores", "2", "measure", "--config", *SETTINGS],
    "analysis.measure": [
        *("analysis.measure", "calls", "--config"),
        '{"studies": ["calls"], "machine": "test-box"}',
    ],
}
WAITING = "waiting"
"""While a file of this name exists, only the first round ends."""
COUNTED = f"""

from pathlib import Path as _Path
from time import sleep as _sleep

_copy = _Path(__file__).parents[2]
with (_copy / "begun").open("a") as _file:
    _file.write("x")
    while _file.tell() > 1 and (_copy / "{WAITING}").exists():
        _sleep(0.1)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipeline with its modules, and a study that counts its rounds."""
    folder = copy_of_pipeline(tmp_path_factory.mktemp("copy") / "hotpath")
    workload = folder / "kernels" / "calls" / "workload.py"
    workload.write_text(workload.read_text() + COUNTED)
    (folder / "tmp").mkdir()
    add_modules(folder)
    return folder


def start(copy: Path, program: str, *, anew: bool = False) -> subprocess.Popen[bytes]:
    """Start a command, after removing what earlier ones have made if it is to begin `anew`."""
    for name in ("results/test-box", "build/rounds") if anew else ():
        shutil.rmtree(copy / name, ignore_errors=True)
    for name in ("begun", "output") if anew else ():
        (copy / name).unlink(missing_ok=True)
    place = {"TMPDIR": str(copy / "tmp"), FOLDER_VARIABLE: str(copy)}
    with (copy / "output").open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", *COMMANDS[program]],
            cwd=copy,
            env=os.environ | place,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def processes(copy: Path) -> list[psutil.Process]:
    """The processes whose working directory is the copy."""
    known = psutil.process_iter(["cwd", "status"])
    return [p for p in known if p.info["cwd"] == str(copy) and p.info["status"] != "zombie"]


def complete(copy: Path, running: subprocess.Popen[bytes], after: str = "") -> None:
    """The command measures every cell once, and leaves no other file."""
    code, output = running.wait(), (copy / "output").read_text()
    assert code == 0, f"{after}:\n{output}"
    folder = copy / "results" / "test-box" / "calls"
    assert_measured_once(folder, ("python", "again", "compiled"), ROUNDS)
    assert (copy / "begun").stat().st_size <= ROUNDS + 1 + len(re.findall("is repeated", output))
    assert [p for p in (copy / "build" / "rounds").rglob("*") if p.is_file()] == []
    assert list((copy / "results").rglob(".*")) == []
    # Snakemake makes an empty folder before it reads the Snakefile.
    assert list((copy / "tmp").glob("[!s]*")) == []
    assert list((copy / "tmp").glob("snakemake*/*")) == []
    assert list((copy / "build" / "processes").iterdir()) == []


@pytest.mark.parametrize(
    ("program", "trials", "seed"),
    [
        pytest.param("analysis.measure", 4, 1, marks=pytest.mark.long),
        pytest.param("snakemake", 2, 2, marks=pytest.mark.long),
        pytest.param("snakemake", 300, 3, marks=pytest.mark.exhaustive),
    ],
)
def test_the_same_command_completes_a_killed_measurement(
    copy: Path, program: str, trials: int, seed: int
) -> None:
    rng = random.Random(seed)
    began = time.monotonic()
    complete(copy, start(copy, program, anew=True))
    duration_s = time.monotonic() - began
    killed = 0
    while killed < trials:
        running = start(copy, program, anew=True)
        time.sleep(rng.uniform(0, duration_s))
        if running.poll() is not None:
            continue  # It ended before the signal.
        number, victims = rng.choice(SIGNALS), processes(copy)
        with suppress(IndexError, psutil.NoSuchProcess, ProcessLookupError):  # it ended
            if killed % 3 == 0:
                os.killpg(running.pid, number)
            else:
                rng.choice(victims).send_signal(number)
        killed += 1
        running.wait()
        wait_for(lambda: not processes(copy))
        complete(copy, start(copy, program), f"after {number!r} to one of {victims}")


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_a_signal_ends_all_programs_and_keeps_finished_rounds(copy: Path, number: int) -> None:
    (copy / WAITING).touch()
    running = start(copy, "snakemake", anew=True)
    wait_for(lambda: "calls: round 2 of" in (copy / "output").read_text())
    left_by_a_kill = list((copy / "tmp").iterdir())
    running.send_signal(number)
    try:
        assert running.wait(DEADLINE_S)
        wait_for(lambda: not processes(copy))
    finally:
        (copy / WAITING).unlink()
    assert left_by_a_kill == []
    assert len([*(copy / "build" / "rounds").rglob("round-??.json")]) == 1
