"""Charts and the facts that they draw."""

from analysis.site.charts.forms import FormTable, choice, form_data, number
from analysis.site.charts.intervals import ENDS, drawn_whole, within_reach
from analysis.site.charts.lines import HEIGHT_PX, dash_legend, line_colour, line_panels, stale_shape
from analysis.site.charts.page_tables import PageTable
from analysis.site.charts.parts import part_bars, part_rows
from analysis.site.charts.patterns import by_pattern, heat, worse_to_better
from analysis.site.charts.rows import (
    ROW_PX,
    finish_rows,
    named,
    named_rows,
    variant_rows,
)
from analysis.site.charts.steps import steps_chart
from analysis.site.charts.theme import (
    CELL_PX,
    WIDE_LABELS,
    Chart,
    finish,
    panels,
    present,
    select,
    si_axis,
    tooltip,
)
from analysis.site.charts.timeline import HOST, kind_colours, timeline_events
from analysis.site.charts.widgets import Widget
from analysis.site.facts.addresses import samples_address
from analysis.site.facts.basis import figures_by_run
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.links import chips
from analysis.site.facts.rows import MeasuredRow
from analysis.site.facts.study_facts import StudyFacts
