"""Check a finished site for gaps and contradictions, a line each. Exits with 1 if there are any.

    python -m analysis.site.check

The build of the site does the same, and stops at a fault of a machine that config.yaml lists under
`published`.
"""

from __future__ import annotations

from analysis import ROOT
from analysis.base.cli import existing_folder, fail_in_one_line, program
from analysis.site.check import find_faults
from analysis.site.facts.inputs import load_inputs
from analysis.study import discover


def main() -> None:
    parser = program("analysis.site.check", __doc__)
    for name, what in (("site", "the finished site"), ("build", "the summary's tables")):
        parser.add_argument(f"--{name}", type=existing_folder, default=ROOT / name, help=what)
    parser.add_argument(
        "--results", type=existing_folder, default=ROOT / "results", help="measured results"
    )
    arguments = parser.parse_args()
    inputs = load_inputs(arguments.build, arguments.results, discover())
    faults = find_faults(arguments.site, inputs)
    for fault in faults:
        print(fault)
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    fail_in_one_line(main)
