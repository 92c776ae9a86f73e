"""Claims of write-ups and of this project, the comparisons that test them, and what those say."""

from analysis.study.claims.claim import Claim
