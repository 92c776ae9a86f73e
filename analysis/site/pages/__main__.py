"""Build the site from results, tables and pages."""

from pathlib import Path
from typing import Final

from analysis.base.cli import fail_in_one_line, program
from analysis.site.pages.site import build_site

FOLDERS: Final = {
    "tables": "the summary's tables",
    "results": "measured results",
    "charts": "charts drawn from these tables",
    "site": "where the site goes",
}


def main() -> None:
    parser = program("analysis.site.pages", __doc__)
    for name, about in FOLDERS.items():
        parser.add_argument(f"--{name}", type=Path, required=True, help=about)
    stopping = "machines whose faults, which the home page otherwise lists, stop the build"
    parser.add_argument("--published", nargs="*", default=[], metavar="MACHINE", help=stopping)
    given = parser.parse_args()
    places = given.tables, given.results, given.charts, given.site
    for fault in build_site(*places, published=given.published):
        print(f"warning: {fault}")


if __name__ == "__main__":
    fail_in_one_line(main)
