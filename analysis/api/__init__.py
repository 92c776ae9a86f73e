"""The door for studies: their workloads, tables, charts and drawings import only from here."""
