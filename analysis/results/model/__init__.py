"""The physical link model: the minimum cost of a variant's reads of host memory."""
