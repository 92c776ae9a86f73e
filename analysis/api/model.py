"""The model of the link and of address translation."""

from analysis.compare.judge import EQUAL_WITHIN
from analysis.results.model.fit import JUDGED_WITHIN, PREDICTED, USES
from analysis.results.model.hardware import Link, predict, read_links
from analysis.results.model.terms import ABOUT
from analysis.results.model.translation import ENTRY_BYTES
