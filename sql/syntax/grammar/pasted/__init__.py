"""Statements of other systems: Flink SQL, ksqlDB, and what RisingWave has and Dovetail says in another way."""
