"""What pages and charts ask of the results: figures, comparisons, points, captures."""
