"""Addresses within the site that charts and pages lead to."""

from __future__ import annotations


def samples_anchor(machine: str, study: str, variant: str) -> str:
    """The id of a variant's samples on the data page."""
    return f"{machine}-{study}-{variant}"


def samples_address(machine: str, study: str, variant: str) -> str:
    """Where a variant's samples are listed, from the root of the site."""
    return f"data/#{samples_anchor(machine, study, variant)}"


def claim_anchor(study: str, claim: str) -> str:
    """The id of a claim on the page of its study and in the ledger."""
    return f"{study}-{claim}"
