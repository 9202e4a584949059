"""``make demo``: Dovetail on real Kafka and Spark, from nothing to a verified result in a minute."""
