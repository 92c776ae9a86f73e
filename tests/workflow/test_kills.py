"""After any process of a measurement is killed, the same command completes the measurement."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from analysis.measure.machine_lock import FOLDER_VARIABLE
from tests.synthetic import assert_measured_once
from tests.waiting import DEADLINE_S, wait_for
from tests.workflow.pipeline import ROUNDS, SETTINGS, add_modules, copy_of_pipeline, succeed

SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
COMMANDS = {
    "snakemake": ["snakemake", "--cores", "2", "measure", "--config", *SETTINGS],
    "analysis.measure": [
        *("analysis.measure", "calls", "--config"),
        '{"studies": ["calls"], "machine": "test-box"}',
    ],
}
TARGETS = ("group", "snakemake", "analysis.measure", "forkserver", "round")
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
    """The built pipeline, with a study that counts its rounds."""
    folder = copy_of_pipeline(tmp_path_factory.mktemp("copy") / "hotpath")
    workload = folder / "kernels" / "calls" / "workload.py"
    workload.write_text(workload.read_text() + COUNTED)
    (folder / "tmp").mkdir()
    add_modules(folder)
    succeed(folder, "build")
    return folder


def begin(copy: Path) -> None:
    """Remove what an earlier measurement made."""
    for name in ("results/test-box", "build/rounds"):
        shutil.rmtree(copy / name, ignore_errors=True)
    for name in ("begun", "output"):
        (copy / name).unlink(missing_ok=True)


def start(copy: Path, program: str) -> subprocess.Popen[bytes]:
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


def processes(copy: Path) -> dict[str, psutil.Process]:
    """A process of each kind, of those whose working directory is the copy."""
    by_kind: dict[str, psutil.Process] = {}
    for process in psutil.process_iter():
        try:
            if process.cwd() != str(copy) or process.status() == "zombie":
                continue
            words, parent = process.cmdline(), process.parent()
            kind = words[2] if len(words) > 2 else "other"
            if "multiprocessing.forkserver" in " ".join(words):
                is_round = parent and "forkserver" in " ".join(parent.cmdline())
                kind = "round" if is_round else "forkserver"
            by_kind[kind] = process
        except psutil.Error:
            continue
    return by_kind


def complete(copy: Path, program: str, after: str = "") -> None:
    """The command measures every cell once, and leaves no other file."""
    code = start(copy, program).wait()
    output = (copy / "output").read_text()
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
        ("analysis.measure", 4, 1),
        pytest.param("snakemake", 2, 2, marks=pytest.mark.long),
        pytest.param("snakemake", 150, 3, marks=pytest.mark.exhaustive),
    ],
)
def test_the_same_command_completes_a_killed_measurement(
    copy: Path, program: str, trials: int, seed: int
) -> None:
    rng = random.Random(seed)
    began = time.monotonic()
    begin(copy)
    complete(copy, program)
    duration_s = time.monotonic() - began
    targets = [target for target in TARGETS if target != "snakemake" or program == target]
    killed = 0
    while killed < trials:
        begin(copy)
        running = start(copy, program)
        time.sleep(rng.uniform(0, duration_s))
        if running.poll() is not None:
            continue  # It ended before the signal.
        number, target = rng.choice(SIGNALS), targets[killed % len(targets)]
        if target == "group":
            os.killpg(running.pid, number)
        else:  # the first process if there is no such target now
            os.kill(getattr(processes(copy).get(target), "pid", running.pid), number)
        killed += 1
        running.wait()
        wait_for(lambda: not processes(copy))
        complete(copy, program, f"after {number!r} to {target}")


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_a_signal_to_snakemake_ends_its_programs_and_keeps_finished_rounds(
    copy: Path, number: int
) -> None:
    begin(copy)
    (copy / WAITING).touch()
    running = start(copy, "snakemake")
    wait_for(lambda: "calls: round 2 of" in (copy / "output").read_text())
    left_by_a_kill = list((copy / "tmp").iterdir())
    running.send_signal(number)
    try:
        assert running.wait(DEADLINE_S)
        wait_for(lambda: not processes(copy))
    finally:
        (copy / WAITING).unlink()
    assert left_by_a_kill == []
    assert len([*(copy / "build" / "rounds").rglob("round-*.json")]) == 1
