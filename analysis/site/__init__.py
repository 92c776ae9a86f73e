"""The published site: facts, charts and pages."""
