"""Placement of the counters of three variants that differ in nothing else."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path
from typing import Final

import pandas as pd

from analysis.api.code import find_cxx, run
from analysis.api.study import Study, Variant

VARIANTS: Final = ("threads_shared_atomic", "sharded_array", "sharded_padded")

PROBE: Final = """
#include <cstdio>

#include "counters.h"

%s

Counters counters;

template <typename Member>
void print(const char* name, const Member& member) {
  const auto offset = [](const void* at) {
    return static_cast<long>(static_cast<const char*>(at) - reinterpret_cast<char*>(&counters));
  };
  if constexpr (requires { member.size(); }) {
    for (size_t i = 0; i < member.size(); ++i) {
      std::printf("%%s[%%zu],%%ld,one thread\\n", name, i, offset(&member[i]));
    }
  } else {
    std::printf("%%s,%%ld,every thread\\n", name, offset(&member));
  }
}

template <typename T>
void print_all(const T& all) {
  print("posted", all.posted);
  print("finished", all.finished);
  if constexpr (requires { all.finished_devices; }) {
    print("finished_devices", all.finished_devices);
  }
}

int main() { print_all(counters); }
"""
"""A program that prints the fields of a variant's counters: name, offset in B, and writer."""


def counter_fields(study: Study, _modules: Path) -> pd.DataFrame:
    """The counters of each of VARIANTS: `field`, `offset` in B, `writer` and `variant`.

    HotpathError where there is no C++ compiler or it fails.
    """
    tables = [_fields(study.variant(name)) for name in VARIANTS]
    return pd.concat(tables, ignore_index=True)


def _fields(variant: Variant) -> pd.DataFrame:
    """Compile the type `Counters` from the variant's source, and print its fields."""
    source = variant.path.read_text()
    counters = re.findall(r"^using Counters = .*?;", source, re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        code, program = Path(folder, "probe.cpp"), Path(folder, "probe")
        code.write_text(PROBE % "\n".join(counters))
        include = f"-I{variant.path.parent}"
        run([find_cxx(), "-std=c++20", include, str(code), "-o", str(program)])
        printed = run([str(program)])
    table = pd.read_csv(io.StringIO(printed), names=["field", "offset", "writer"])
    return table.assign(variant=variant.name)


TABLES: Final = {"counter_fields": counter_fields}
