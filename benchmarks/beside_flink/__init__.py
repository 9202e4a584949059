"""Joins on Dovetail and on a tuned Flink SQL, over the same topics of one broker: ``make bench-flink``."""
