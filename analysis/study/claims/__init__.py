"""Claims of write-ups and of this project, the comparisons that test them, and what those say."""

from analysis.study.claims import (
    kinds,
    kinds_counted,
    kinds_printed,
)  # importing them makes every kind known
from analysis.study.claims.loading import Claim, Subjects, parse_claims
