"""Build the site from results, tables and pages."""

from pathlib import Path

from analysis import ROOT
from analysis.base.cli import existing_folder, fail_in_one_line, program
from analysis.base.errors import HotpathError
from analysis.site.pages.site import build_site


def main() -> None:
    parser = program("analysis.site.pages", __doc__)
    parser.add_argument("--tables", type=Path, default=ROOT / "build", help="the summary's tables")
    parser.add_argument(
        "--results", type=existing_folder, default=ROOT / "results", help="measured results"
    )
    parser.add_argument("--site", type=Path, default=ROOT / "site", help="where the site goes")
    parser.add_argument(
        "--charts",
        type=existing_folder,
        default=ROOT / "build" / "charts",
        help="folder of charts drawn from these tables",
    )
    parser.add_argument(
        "--published",
        nargs="*",
        default=[],
        metavar="MACHINE",
        help="machines whose faults, which the home page otherwise lists, stop the build",
    )
    given = parser.parse_args()
    if not (given.tables / "summary.csv").exists():
        hint = "no tables in it; run `snakemake -c 8 summary`"
        raise HotpathError(f"--tables: {given.tables}: {hint}")
    places = given.tables, given.results, given.charts, given.site
    for fault in build_site(*places, published=given.published):
        print(f"warning: {fault}")


if __name__ == "__main__":
    fail_in_one_line(main)
