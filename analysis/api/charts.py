"""Charts and the facts that they draw."""

from analysis.site.charts.lines import line_chart
from analysis.site.charts.parts import PART_WORDS, part_chart, part_rows
from analysis.site.charts.patterns import map_chart
from analysis.site.charts.rows import dot_chart
from analysis.site.charts.theme import (
    BASIS_COLUMNS,
    HEIGHT_PX,
    Chart,
    Select,
    band,
    colour,
    log_scale,
    present,
    si_axis,
)
from analysis.site.charts.timeline import EVENT_COLUMNS, HOST, event_bars, timeline_events
from analysis.site.charts.widgets import PageTable
from analysis.site.facts.addresses import samples_addresses
from analysis.site.facts.captures import STALE, walk_reads
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.links import Chip
from analysis.site.facts.study_facts import StudyFacts, figures, fresh_figures
