"""Studies, as described by study.yaml. A folder with a study.yaml is a study."""

from analysis.study.description import (
    CAPTURE_KINDS,
    GRIDS,
    ROLES,
    Case,
    CaseValue,
    Metric,
    Study,
    Variant,
    calibrating,
    case_id,
    parse_case,
)
from analysis.study.loading import NAME, discover, find_study, load_study

__all__ = [
    "CAPTURE_KINDS",
    "GRIDS",
    "NAME",
    "ROLES",
    "Case",
    "CaseValue",
    "Metric",
    "Study",
    "Variant",
    "calibrating",
    "case_id",
    "discover",
    "find_study",
    "load_study",
    "parse_case",
]
