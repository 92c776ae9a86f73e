"""Addresses within the site, for links from charts and pages."""

from urllib.parse import urlencode

import pandas as pd


def samples_anchor(machine: str, study: str, variant: str) -> str:
    """Anchor of a variant's samples on the data page."""
    return f"{machine}-{study}-{variant}"


def samples_address(
    machine: str, study: str, variant: str, case: str = "", metric: str = ""
) -> str:
    """Address of a variant's samples, relative to the root of the site; their plot shows this case
    and metric if they are given."""
    chosen = {"samples.case": case, "samples.metric": metric}
    query = urlencode({key: value for key, value in chosen.items() if value})
    return f"data/{'?' * bool(query)}{query}#{samples_anchor(machine, study, variant)}"


def samples_addresses(table: pd.DataFrame) -> list[str]:
    """Addresses of the samples for each row of a table with columns machine, study, variant, case
    and metric."""
    keys = table[["machine", "study", "variant", "case", "metric"]]
    return [samples_address(*key) for key in keys.itertuples(index=False, name=None)]


def claim_anchor(study: str, claim: str) -> str:
    """Anchor of a claim on its study's page and in the ledger."""
    return f"{study}-{claim}"
