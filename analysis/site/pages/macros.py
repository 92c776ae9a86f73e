"""The macros that pages embed: functions of this module that `@macro` or `@study_macro` registers.

A page calls `{{ name(arguments) }}`. The first parameter is not the page's to give: it is the Page
that is being built, or of a macro of a study what is known of that page's study.
"""

from __future__ import annotations

import functools
from typing import Any

from markupsafe import escape

from analysis.base.errors import require_known
from analysis.base.quantities import whole
from analysis.base.schema import read_yaml
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.interface import CONSTANTS
from analysis.site.pages import (
    architecture,
    hardware,
    home,
    links,
    machines,
    model,
    reference,
    study_pages,
    walkthrough,
)
from analysis.site.pages import ledger as claim_pages
from analysis.site.pages.agreement import agreement_section
from analysis.site.pages.chart_figures import chart_figure, common_figure
from analysis.site.pages.copies import copy_tables
from analysis.site.pages.counters import walk_tables
from analysis.site.pages.drawings import drawing_figure
from analysis.site.pages.html import link
from analysis.site.pages.measuring import measuring_section
from analysis.site.pages.navigation import JOURNEYS
from analysis.site.pages.page import MACROS, Page, macro, study_macro
from analysis.site.pages.repeatability import repeatability_section
from analysis.site.pages.variants import sections
from analysis.study import ROLES, CaseValue
from analysis.study.config import CONFIG_FILE

__all__ = ["MACROS", "define_env"]


def define_env(env: Any) -> None:
    """Called by mkdocs-macros; the configuration's `extra.staged` holds what was staged."""
    page = Page(env.conf["extra"]["staged"], env)
    for name, function in MACROS.items():
        env.macro(functools.partial(function, page), name)


@study_macro
def lead(page: Page, facts: StudyFacts) -> str:
    """The question of the study, what was found, and the text it goes back to."""
    page.env.page.meta["description"] = escape(study_pages.summary(facts))
    return study_pages.lead(facts)


@study_macro
def chart(page: Page, facts: StudyFacts, name: str, caption: str) -> str:
    """A chart with its selects, its data and a caption.

    name: one of the common charts (`steps`, `cases`, `model`, `agreement`, `timeline`), or of those
        that the study's charts.py returns
    caption: one or two sentences below it
    """
    return chart_figure(page, facts, name, caption)


@study_macro
def drawing(page: Page, facts: StudyFacts, name: str, caption: str) -> str:
    """A drawing of how the study's operation works, with a caption.

    name: one of those that the study's drawings.py returns
    caption: one or two sentences below it
    """
    return drawing_figure(facts, name, caption)


@study_macro
def variants(page: Page, facts: StudyFacts, *roles: str) -> str:
    """A section for each variant: what came out, its idea, its difference in code, and its evidence
    in folds; a paragraph for each that no machine could run.

    roles: `step`, `reference`, `ceiling` or `beyond`; one or several
    """
    for role in roles:
        require_known("role", role, ROLES)
    return sections(facts, roles, page.place)


@study_macro
def measured_order(page: Page, facts: StudyFacts) -> str:
    """Where a step is surely slower than an earlier one, a sentence each."""
    return study_pages.order(facts)


@study_macro
def headroom(page: Page, facts: StudyFacts, claim: str, bound: str) -> str:
    """How far a bound could take the speed-up that a claim measures, a sentence a machine.

    claim: id of a claim of this study
    bound: name of the metric that is the bound, a factor
    """
    return study_pages.headroom(facts, claim, bound)


@study_macro
def metrics(page: Page, facts: StudyFacts, *roles: str) -> str:
    """Every metric of some variants on every machine, in a table.

    roles: as of `variants`
    """
    return study_pages.metric_table(facts, roles)


@study_macro
def hosts(page: Page, facts: StudyFacts, variant: str, *others: str) -> str:
    """How fast one core of the host was in each run, beside the rates of some variants in it.

    variant: its name; rates are in its shown case
    others: names of those beside it
    """
    return study_pages.host_table(facts, [variant, *others])


@study_macro
def published(page: Page, facts: StudyFacts) -> str:
    """What the write-up printed, in SI units, beside what each machine measures."""
    return study_pages.published_table(facts)


@study_macro
def skipped(page: Page, facts: StudyFacts) -> str:
    """What is missing, with the reason: cases that were skipped or failed, counters and timelines,
    and tables that could not be made from the code."""
    return study_pages.missing(facts)


@study_macro
def claims(page: Page, facts: StudyFacts, *ids: str) -> str:
    """The claims of the study, with the verdict on each machine.

    ids: of some of them; left out, all are told
    """
    return claim_pages.claims_of(facts, page.place, ids)


@study_macro
def predictions(page: Page, facts: StudyFacts) -> str:
    """What limits each variant by the link model, and how far it is from that."""
    return model.model_table(facts)


@study_macro
def unjudged(page: Page, facts: StudyFacts) -> str:
    """The variants and cases that the link model cannot judge, and why."""
    return model.unjudged(facts)


@study_macro
def judgement(page: Page, facts: StudyFacts) -> str:
    """How near the link model's predictions are, where the link surely binds."""
    return model.judgement(facts)


@study_macro
def misses(page: Page, facts: StudyFacts) -> str:
    """The judged points that are further from the link model's predictions than accepted."""
    return model.misses(facts)


@study_macro
def rates(
    page: Page, facts: StudyFacts, variant: str, down: str, across: str, *values: CaseValue
) -> str:
    """A variant's rates over two keys of its case, measured or else predicted by the link model.

    variant: its name
    down: the key of the rows
    across: the key of the columns, all that the variant has; a number
    values: those of the rows
    """
    return model.rate_table(facts, variant, down, across, values)


@study_macro
def counters(page: Page, facts: StudyFacts) -> str:
    """The hardware counters that the link model predicts, beside those counted."""
    return model.counter_table(facts)


@study_macro
def page_table_reads(page: Page, facts: StudyFacts, key: str, each: str) -> str:
    """How often each variant has page tables read by the hardware's counters.

    key: of the profiled case, a number: reads are also told for each of these
    each: what one of them is called
    """
    return walk_tables(facts, key, each)


@study_macro
def copies(page: Page, facts: StudyFacts) -> str:
    """How busy copies from the host keep the copy engine, by the timelines of the study."""
    return copy_tables(facts)


@macro
def download(page: Page, name: str) -> str:
    """A link to a table, or to all samples.

    name: of a file in data/, such as `summary.csv`
    """
    return link(page.address(f"data/{name}"), name)


@macro
def constant(page: Page, name: str) -> str:
    """A constant as it is in the code; shares as percentages, sizes in MiB.

    name: of one of those in analysis/site/interface.py, such as `CONFIDENCE`
    """
    require_known("constant", name, sorted(CONSTANTS))
    value = CONSTANTS[name]
    if name.endswith("_BYTES"):
        return f"{value / 2**20:g} MiB"
    return f"{value * 100:g} %" if isinstance(value, float) else whole(value)


@macro
def columns(page: Page, file: str) -> str:
    """The columns of a file of results or of a table, in their order.

    file: as the page about the contract names it, such as `summary.csv`
    """
    return reference.column_list(file)


@macro
def ledger(page: Page) -> str:
    """Every claim of every study, with the verdict on each machine."""
    return claim_pages.ledger(page.staged.studies, page.staged.pages, page.place)


@macro
def link_parameters(page: Page) -> str:
    """The parameters of the link model on every machine."""
    return model.parameter_table(page.staged.inputs)


@macro
def measuring(page: Page) -> str:
    """How long each machine's newest default run took, study by study."""
    return measuring_section(page.staged.inputs)


@macro
def repeatability(page: Page) -> str:
    """How far the newest run of each machine confirms what its other runs say."""
    return repeatability_section(page.staged.inputs)


@macro
def agreement(page: Page) -> str:
    """How often the method calls two measurements of one program different."""
    return agreement_section(page.staged.inputs)


@macro
def journeys(page: Page) -> str:
    """A card for each journey: its steps, how far they are from the limit, what surprised."""
    return home.cards(page.studies[JOURNEYS], page.study_address)


@macro
def findings(page: Page) -> str:
    """Findings against common beliefs, each with its figures and its evidence, under a heading."""
    told = [facts for group in page.studies.values() for facts in group]
    return home.contradicted_beliefs(told, page.study_address)


@macro
def other_studies(page: Page) -> str:
    """The questions of all studies but the journeys, by group."""
    others = {title: group for title, group in page.studies.items() if title != JOURNEYS}
    return home.other_studies(others, page.study_address)


@macro
def freshness(page: Page) -> str:
    """When and from which commit each machine was measured, and what is stale."""
    return machines.freshness(page.staged.inputs)


@macro
def common_chart(page: Page, name: str, caption: str) -> str:
    """A chart of no one study, as `chart`.

    name: `machines` or `links`
    caption: one or two sentences below it
    """
    return common_figure(page, name, caption)


@macro
def machine_pairs(page: Page) -> str:
    """What came out of every two machines."""
    return hardware.pairs(page.staged.comparison)


@macro
def machine_gaps(page: Page) -> str:
    """What could not be compared between two machines, and why."""
    return hardware.gaps(page.staged.comparison)


@macro
def machine_figures(page: Page) -> str:
    """Every variant's figure on every machine, with its share of the machine's own ceiling."""
    return hardware.figures_table(page.staged.comparison)


@macro
def predicted_links(page: Page) -> str:
    """Predicted rates over other links, beside measured ones where there are any."""
    return links.predictions(page.staged.studies)


@macro
def stated_links(page: Page) -> str:
    """The parameters of those links, each with its source."""
    return links.link_parameters(page.staged.studies)


@macro
def machine_differences(page: Page) -> str:
    """What differs between the machines, and what does not."""
    return hardware.differences(page.staged.inputs)


@macro
def machine_hosts(page: Page) -> str:
    """The runs of each machine by host, and what differs between the hosts."""
    return hardware.hosts(page.staged.comparison)


@macro
def machine_table(page: Page) -> str:
    """What every machine reported of itself."""
    return machines.machine_table(page.staged.inputs)


@macro
def provenance(page: Page) -> str:
    """Every run of every machine: commit, compiler, how many variants."""
    return machines.provenance_table(page.staged.inputs)


@macro
def samples(page: Page) -> str:
    """Links to the samples of every machine, study and variant."""
    return machines.sample_tables(page.staged.inputs, page.staged.files, page.place)


@macro
def reading_list(page: Page) -> str:
    """The files that a newcomer should read first, each with a link to its text."""
    return walkthrough.reading_list(page.place)


@macro
def sample_path(page: Page) -> str:
    """A picture of the path of one sample, from its kernel to its bar."""
    del page
    return walkthrough.sample_path()


@macro
def parts(page: Page) -> str:
    """Every part of the package by floor, its purpose and its imports."""
    return architecture.part_table(architecture.read_structure())


@macro
def study_keys(page: Page) -> str:
    """Every key of study.yaml, from its schema."""
    return reference.schema_reference(reference.study_schema())


@macro
def setting_keys(page: Page) -> str:
    """Every setting of config.yaml, from its schema, with its value there."""
    return reference.schema_reference(reference.config_schema(), read_yaml(CONFIG_FILE))


@macro
def claim_kinds(page: Page) -> str:
    """Every kind of comparison that a claim may make, with its keys."""
    return reference.claim_kinds()


@macro
def link_keys(page: Page) -> str:
    """Which keys a `link` has for each way of reading host memory."""
    return reference.link_keys()


@macro
def macro_list(page: Page) -> str:
    """Every macro, as on this page."""
    return reference.macro_reference(MACROS, given=(Page, StudyFacts))


@macro
def programs(page: Page) -> str:
    """What each program of the package says when asked for help."""
    return reference.program_reference(page.staged.inputs.studies)
