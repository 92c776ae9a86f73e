"""Small studies of host code, and their measurement."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from analysis.base.gpu import Gpu
from analysis.measure.journal import Host, Journal, publish
from analysis.measure.plan import Place, Plan
from analysis.measure.run import run_rounds
from analysis.results.store.keys import Look
from analysis.results.store.runs import Run
from analysis.study import Study, load_study
from analysis.study.config import Grid
from tests.compiled import toolchain
from tests.synthetic import Sample, description, files_of, samples_in, write_description

GPU = Gpu(None, "GPU", "GPU-0", 0, "sm_90", "")
GRID = Grid(name="default", rounds=3, samples=2, sample_budget_s=0.05)
QUIET = Look(copy_bytes_per_s=14e9, busy_share=0.0, steal_s=1.0)
WORKLOAD = '''\
"""Fill a buffer with ones."""

from analysis.measure.cell import PythonOperation, Skip

POISON = 0xA5


class Workload:
    def __init__(self, constants, rng):
        self.out = bytearray()

    def prepare(self, case):
        self.out = bytearray(case.number("n") * 8)

    def bind(self, variant, module):
        if len(self.out) > getattr(module, "LARGEST", 99):
            raise Skip("too large for this machine")
        return Bound(module, self.out)


class Bound(PythonOperation):
    def __init__(self, module, out):
        self.module, self.out = module, out

    def poison(self):
        self.out[:] = bytes([POISON]) * len(self.out)

    def launch(self, stream):
        self.module.fill(self.out)

    def check(self):
        wrong = [i for i, byte in enumerate(self.out) if byte != 1]
        return f"byte {wrong[0]}: expected 1, got {self.out[wrong[0]]}" if wrong else None

    def own_samples(self, stream, count):
        return {"filled": [len(self.out)]}
'''
FILL = '''\
"""Fill at once."""


def fill(out):
    out[:] = b"\\x01" * len(out)
'''
WRONG = '''\
"""Forget the last byte of a large buffer."""


def fill(out):
    size = len(out) if len(out) <= 8 else len(out) - 1
    out[:size] = b"\\x01" * size
'''
TROUBLE = '''\
"""Fill, and run the code in the file `trouble` in the round that it names, or in every one."""

from pathlib import Path

HERE = Path(__file__).parent
with (HERE / "rounds").open("a") as file:
    file.write("x")
ROUND, TROUBLE = (HERE / "rounds").stat().st_size, HERE / "trouble"
WANTED, CODE = TROUBLE.read_text().split(" ", 1) if TROUBLE.exists() else ("0", "")


def fill(out):
    out[:] = b"\\x01" * len(out)
    if WANTED in (str(ROUND), "every"):
        exec(CODE)
'''
REFUSES = f"{FILL}\n\nLARGEST = 8\n"
SIZES: Final = {"n": [1, 2], "payload_bytes": "n * 8"}


def write_study(folder: Path, *variants: dict[str, Any], **cases: Mapping[str, Any]) -> Study:
    """A study of `variants`. `cases` are further case sets; those of `sizes` change these."""
    described = description(
        "Fill",
        {"host_time": ("s", "host time"), "filled": ("B", "bytes")},
        {"sizes": {}, **cases} | {"sizes": {**SIZES, **cases.get("sizes", {})}},
        [{"clock": "python", **variant} for variant in variants],
        headline={"n": 1},
    )
    study = write_description(folder, described)
    sources = {"workload": WORKLOAD, "wrong": WRONG, "trouble": TROUBLE, "refuses": REFUSES}
    for name in ("workload", *(str(v.get("source", v["name"])) for v in variants)):
        path = folder / f"{name}.py"
        if not path.exists():
            path.write_text(sources.get(name, FILL))
    return load_study(study)


def plan_of(study: Study, place: Place, **changed: Any) -> Plan:
    """A plan of all variants; `changed` are keys of the grid."""
    return Plan(study, study.variants, replace(GRID, **changed), place)


def host(limit_s: float = 60.0, **more: Any) -> Host:
    return Host(toolchain(), "sm_90", Path(), limit_s, **more)


def measure(plan: Plan) -> Journal:
    """Measure what the plan lacks."""
    journal = Journal(plan)
    run_rounds(journal, host())
    return journal


def run(plan: Plan) -> list[str]:
    """Measure and publish; returns the lines about the outcome."""
    return list(publish(measure(plan), host()))


def only_run(place: Place, study: Study) -> Run:
    """The only run of a study."""
    (found,) = place.runs(study)
    return found


def samples_at(place: Place, study: Study, variant: str) -> list[Sample]:
    """The samples of a variant in all runs."""
    files = files_of(place.root, place.machine, study.name)
    return [sample for path in files for sample in samples_in(path, variant)]


def started_rounds(study: Study) -> int:
    """Number of started rounds: each loads the module `trouble` once."""
    path = study.folder / "rounds"
    return path.stat().st_size if path.exists() else 0


def contents(folder: Path) -> dict[str, bytes]:
    """The files below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
