"""Results of a machine, their summaries, and the quantile of their intervals."""

from analysis.base.statistics import student
from analysis.results.store.collect import collect
from analysis.results.tables.summary import summarise
