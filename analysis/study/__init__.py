"""Studies, as described by study.yaml. A folder with a study.yaml is a study."""

from analysis.base.keys import NAME
from analysis.study.description import (
    Case,
    Metric,
    Study,
    Variant,
    calibrating,
    case_id,
    parse_case,
)
from analysis.study.keys import CAPTURE_KINDS, GRIDS, ROLES, CaseValue
from analysis.study.loading import discover, find_study, load_study
