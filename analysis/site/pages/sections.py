"""Sections of a page that are folded below their headings: those of the class `fold`."""

from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor

FOLD: Final = "fold"
"""In Markdown: `## Samples {: .fold }`."""
LEVELS: Final = ("h2", "h3")
AFTER_TOC: Final = 4
"""Priority of a tree processor that runs after the table of contents has named the headings."""


class Folds(Treeprocessor):  # type: ignore[misc]
    """Puts each folded section, from its heading to the next of its level, into a `details`."""

    def run(self, root: Element) -> None:
        children = list(root)
        for child in children:
            root.remove(child)
        open_folds: dict[str, Element] = {}
        for child in children:
            if child.tag in ("h1", *LEVELS):
                open_folds = {name: fold for name, fold in open_folds.items() if name < child.tag}
            parent = list(open_folds.values())[-1] if open_folds else root
            if child.tag in LEVELS and child.get("class") == FOLD:
                del child.attrib["class"]
                for link in child.findall("a[@class='headerlink']"):
                    child.remove(link)  # a summary is a button, and has no other inside
                fold = SubElement(parent, "details", {"class": f"hp-section hp-{child.tag}"})
                SubElement(fold, "summary").append(child)
                open_folds[child.tag] = fold
            else:
                parent.append(child)


class SectionExtension(Extension):  # type: ignore[misc]
    """Python-Markdown's extension of this module."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.treeprocessors.register(Folds(md), "folds", AFTER_TOC)


def makeExtension(**settings: Any) -> SectionExtension:
    """Called by Markdown to load the extension."""
    return SectionExtension(**settings)
