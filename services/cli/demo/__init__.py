"""``make demo``: Dovetail on real Kafka and Spark, from nothing to a verified result in a minute."""

EVENTS = 240_000
"""Of the click-through pipeline, unless another number is asked for."""
