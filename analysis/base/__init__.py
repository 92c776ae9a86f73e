"""Units, quantities, statistics, errors, files, locks and processes; imports no other part."""
