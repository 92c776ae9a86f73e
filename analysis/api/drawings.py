"""Drawings on the page of a study."""

from analysis.site.pages.drawings import Drawing
from analysis.site.pages.svg import Canvas
