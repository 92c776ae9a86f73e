"""Studies, as described by study.yaml. A folder with a study.yaml is a study."""

from analysis.base.keys import NAME
from analysis.study.description import Case, Study, Variant, calibrating, parse_case
from analysis.study.keys import CAPTURE_KINDS, GRIDS, ROLES, CaseValue, case_id
from analysis.study.loading import discover, find_study, load_study
