"""Results of a machine, their summaries, and intervals of figures."""

from analysis.base.statistics import Estimate, student
from analysis.results.collect import chosen, collect, fresh
from analysis.results.store.folders import machines
from analysis.results.tables.answers import NEAR, fresh_rows, link_rates
from analysis.results.tables.summary import summarise
