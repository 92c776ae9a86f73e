"""Summarise the results of every machine into tables.

python -m analysis.results --results results --out build
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from analysis.cli import fail_in_one_line
from analysis.results.collect import collect
from analysis.results.summary import ratios, skipped, summarise
from analysis.study import discover


def main() -> None:
    parser = argparse.ArgumentParser(description="Summarise the results of every machine.")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    studies = discover()
    collected = collect(arguments.results, studies)
    for machine, reason in collected.refused.items():
        print(f"warning: machine {machine} is left out: {reason}", file=sys.stderr)
    arguments.out.mkdir(parents=True, exist_ok=True)
    tables = {
        "summary": summarise(collected.samples),
        "ratios": ratios(collected.samples, studies),
        "skipped": skipped(collected.samples),
    }
    for name, table in tables.items():
        table.to_csv(arguments.out / f"{name}.csv", index=False, float_format="%.7g")
    (arguments.out / "refused.json").write_text(json.dumps(collected.refused, indent=1) + "\n")


if __name__ == "__main__":
    fail_in_one_line(main)
