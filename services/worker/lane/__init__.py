"""Lanes: the partitions of a lookup query, each answered run by run."""
