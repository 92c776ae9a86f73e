"""Addresses within the site that charts and pages lead to."""

from __future__ import annotations

import pandas as pd


def samples_anchor(machine: str, study: str, variant: str) -> str:
    """The id of a variant's samples on the data page."""
    return f"{machine}-{study}-{variant}"


def samples_address(machine: str, study: str, variant: str) -> str:
    """Where a variant's samples are listed, from the root of the site."""
    return f"data/#{samples_anchor(machine, study, variant)}"


def samples_addresses(table: pd.DataFrame) -> list[str]:
    """Those of the rows of a table, which are of a machine, study and variant."""
    keys = table[["machine", "study", "variant"]].itertuples(index=False, name=None)
    return [samples_address(*key) for key in keys]


def claim_anchor(study: str, claim: str) -> str:
    """The id of a claim on the page of its study and in the ledger."""
    return f"{study}-{claim}"
