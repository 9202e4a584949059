"""The worker's own process: it keeps one child for each lookup query."""
