"""The studies of the repository, read once, and copies of them."""

import shutil
from collections.abc import Collection
from pathlib import Path

from analysis import ROOT
from analysis.study import discover

STUDIES = discover()

TOPS = sorted({study.folder.parent for study in STUDIES.values()})
"""The top-level folders that have studies."""


def copy_studies(repository: Path, names: Collection[str] = STUDIES) -> None:
    """Copy the folders of these studies, and those that studies share, to another repository."""
    for folder in (path for top in TOPS for path in top.iterdir() if path.is_dir()):
        if folder.name in names or folder.name not in STUDIES:
            shutil.copytree(
                folder,
                repository / folder.relative_to(ROOT),
                ignore=shutil.ignore_patterns("__pycache__"),
            )
