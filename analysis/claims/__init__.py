"""Claims of write-ups and of this project, the comparisons that test them, and what those say."""

from analysis.claims import kinds  # importing it makes every kind known
from analysis.claims.comparison import comparison_schema
from analysis.claims.loading import Claim, Subjects, parse_claims

__all__ = ["Claim", "Subjects", "comparison_schema", "kinds", "parse_claims"]
