"""Write the JSON schemas of study.yaml and config.yaml, for editors and programs.

python -m analysis.site.schemas
"""

from __future__ import annotations

import json

from analysis import ROOT
from analysis.base.cli import fail_in_one_line, program
from analysis.site.pages.reference import schema_of, study_schema
from analysis.study.config import Settings


def schemas() -> dict[str, str]:
    """The text of each file, by its name in config/."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    found = {"study": study_schema(), "config": schema_of(Settings)}
    texts = {name: json.dumps({**draft, **one}, indent=1) for name, one in found.items()}
    return {f"{name}.schema.json": f"{text}\n" for name, text in texts.items()}


def main() -> None:
    program("analysis.site.schemas", __doc__).parse_args()
    for name, text in schemas().items():
        (ROOT / "config" / name).write_text(text)


if __name__ == "__main__":
    fail_in_one_line(main)
