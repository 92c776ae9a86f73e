"""The site: pages, tables and charts made from summaries and sources."""
