"""The model of the link and of address translation."""

from analysis.results.model.fit import CAUCHY_SCALE, FLOOR
from analysis.results.model.judge import PREDICTED
from analysis.results.model.traffic import traffic_of
from analysis.results.model.translation import ENTRY_BYTES
from analysis.study.calibration import is_third
