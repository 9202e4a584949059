"""The steps of a record's way through Spark."""
