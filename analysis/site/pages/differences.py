"""The code of a variant, and its difference from the previous step."""

from __future__ import annotations

import difflib
from typing import Final

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from analysis.study import Study, Variant

LANGUAGES: Final = {".cu": "cuda", ".cpp": "cpp", ".py": "python"}


def code_difference(study: Study, variant: Variant) -> str:
    """Unified diff of the variant's file against that of its `after`; empty if equal."""
    if variant.after is None:
        return ""
    before = study.variant(variant.after)
    if before.path == variant.path:
        return ""
    lines = difflib.unified_diff(
        before.path.read_text().splitlines(),
        variant.path.read_text().splitlines(),
        before.path.name,
        variant.path.name,
        n=2,
        lineterm="",
    )
    return "\n".join(lines)


def setting_difference(study: Study, variant: Variant) -> list[str]:
    """What study.yaml sets otherwise for the variant than for its `after`: flags, constants and
    options."""
    if variant.after is None:
        return []
    before = study.variant(variant.after)
    changes = []
    if variant.flags != before.flags:
        changes.append(f"flags `{' '.join(variant.flags) or 'none'}`")
    settings = {**variant.constants, **variant.options}
    earlier = {**before.constants, **before.options}
    changes += [
        f"`{name} = {value}` instead of `{earlier.get(name, 'unset')}`"
        for name, value in settings.items()
        if earlier.get(name) != value
    ]
    return changes


def fenced(text: str, language: str) -> str:
    """`text` as a Markdown code block, longer-fenced than anything in it."""
    fence = "````" if "```" in text else "```"
    return f"{fence} {language}\n{text.rstrip()}\n{fence}"


def highlighted(text: str, language: str) -> Markup:
    """`text` as a code block in HTML, marked as Markdown's are."""
    block = highlight(text, get_lexer_by_name(language), HtmlFormatter(cssclass="highlight"))
    return Markup(block.replace("<pre>", '<pre tabindex="0">', 1))
