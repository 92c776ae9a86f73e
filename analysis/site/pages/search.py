"""What search finds beside the headings of pages: every claim, by its words and by its id."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from markupsafe import escape

from analysis.site.facts.addresses import claim_anchor
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.badges import outcome
from analysis.site.pages.html import code, paragraph

INDEX: Final = Path("search/search_index.json")
"""Of a site, as mkdocs writes it: sections with `location`, `title` and `text`, which is HTML."""


def add_claims(site: Path, studies: Iterable[StudyFacts]) -> None:
    """Add the claims of `studies` to the index of the built `site`, each with its address."""
    index = json.loads((site / INDEX).read_text())
    index["docs"] += [entry for facts in studies for entry in _entries(facts)]
    (site / INDEX).write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")))


def _entries(facts: StudyFacts) -> Iterator[dict[str, str]]:
    for claim in facts.study.claims:
        rows = facts.verdicts.by_claim.get(claim.id, [])
        verdicts = [facts.verdicts.shown(row) for row in rows]
        text = paragraph(code(claim.id), ": ", outcome(verdicts))
        yield {
            "location": f"ledger/#{claim_anchor(facts.study.name, claim.id)}",
            "title": str(escape(claim.says)),
            "text": str(text),
        }
