"""Descriptions of studies, and errors that name a field."""

from analysis.base.cli import at_least, fail_in_one_line, program
from analysis.base.errors import FieldError, HotpathError, require_known, visible
from analysis.study import Case, CaseValue, Study, Variant, find_study, parse_case
from analysis.study.access import Access
from analysis.study.config import load_config
