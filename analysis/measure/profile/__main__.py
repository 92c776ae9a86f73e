"""Capture counters and a timeline of each variant of a study, in the case that study.yaml says.

python -m analysis.measure.profile STUDY [--config JSON]
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from analysis import BUILD, ROOT
from analysis.base.cli import fail_in_one_line, program, settings
from analysis.base.errors import HotpathError, require_known
from analysis.base.gpu import open_gpus, show_only
from analysis.base.records import read_records, records_text
from analysis.measure.machine import commit_of, describe, utc_now, whole_machine
from analysis.measure.plan import find_places
from analysis.measure.profile import ncu
from analysis.results.store import keys
from analysis.results.store.records import CAPTURED, Counter, Event
from analysis.results.store.runs import add
from analysis.study import CAPTURE_KINDS, Study
from analysis.study.config import Config, load_config
from analysis.study.keys import CaptureKind
from analysis.study.source import fingerprint
from analysis.toolchain.compilers import AUTO, find_toolchain
from analysis.toolchain.modules import built_modules

NO_KERNEL: Final = "no kernel was seen in the launch that was profiled"


def capture_all(study: Study, config: Config) -> None:
    """Capture every kind of each variant. If one is impossible here, its file records why."""
    with open_gpus(config.gpus) as gpus:
        place = find_places(config, gpus)[study.name]
        arch = gpus[0].arch if config.arch == AUTO else config.arch
        host = describe(place.gpus)
    toolchain, commit = find_toolchain(config.nvcc), commit_of(ROOT)
    runnable = [v for v in study.variants if v.on_gpu and place.unmet(v) is None]
    cases = [(v, case) for v in runnable if (case := study.captured_case(v))]
    show_only(place.in_use([variant for variant, _ in cases]))
    for kind in CAPTURE_KINDS:
        of_kind = {v.name: case for v, case in cases if kind in v.captures}
        if not of_kind:
            continue
        records, reason = capture(kind, study, of_kind, built_modules(arch))
        statuses = dict.fromkeys(of_kind, f"not captured: {reason}")
        statuses |= dict.fromkeys((record.variant for record in records), CAPTURED)
        print(f"{study.name}: {kind}: {statuses}", file=sys.stderr)
        about = keys.CaptureFile(
            format=keys.FORMAT,
            kind=kind,
            machine=place.machine,
            study=study.name,
            at=utc_now("seconds"),
            commit=commit.name,
            dirty=commit.dirty,
            files={},
            host=host,
            compiler=keys.Compiler(nvcc=toolchain.version, cxx=toolchain.cxx_version, arch=arch),
            variants={
                name: keys.CapturedVariant(
                    case=case,
                    source_sha256=fingerprint(study, study.variant(name)),
                    status=statuses[name],
                    bounds=study.bounds_of(name, counted=True) if kind == "counters" else {},
                )
                for name, case in of_kind.items()
            },
        )
        text = records_text(type(records[0]), records, ".9f") if records else ""
        name = about.file_name.replace(".json", ".csv")
        add(place.folder / study.name, about, {name: text} if text else {})


def capture(
    kind: CaptureKind, study: Study, cases: Mapping[str, str], modules: Path
) -> tuple[list[Counter] | list[Event], str]:
    """The records of one kind of the variants in their `cases`, and why a variant has none."""
    with TemporaryDirectory(dir=BUILD) as folder:
        words = [kind, study.name, str(modules), folder, *cases]
        session = [sys.executable, "-m", "analysis.measure.profile.session", *words]
        try:
            if kind == "counters":
                return list(ncu.parse(ncu.capture(session), cases)), NO_KERNEL
            done = subprocess.run(session, capture_output=True, text=True, check=False)
            said = (done.stderr.strip().splitlines() or ["no message"])[-1]
            files = sorted(Path(folder).glob("*.csv"))  # also of a session that ended early
            events = [event for path in files for event in read_records(path, Event)]
            return events, keys.without_private(said) if done.returncode else NO_KERNEL
        except HotpathError as error:
            return [], keys.without_private(str(error))


def main() -> None:
    parser = program("analysis.measure.profile", __doc__)
    parser.add_argument("study")
    parser.add_argument("--config", type=settings, default={}, help="overrides, as JSON")
    arguments = parser.parse_args()
    config = load_config(arguments.config)
    require_known("study", arguments.study, sorted(config.studies))
    with whole_machine(config.busy, f"profiling {arguments.study}"):
        capture_all(config.studies[arguments.study], config)


if __name__ == "__main__":
    fail_in_one_line(main)
