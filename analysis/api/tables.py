"""Results of a machine and their summaries."""

from analysis.results.store.collect import collect
from analysis.results.tables.summary import summarise
