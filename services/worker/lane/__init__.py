"""Lanes: the partitions of a lookup query, each answered fetch by fetch."""
