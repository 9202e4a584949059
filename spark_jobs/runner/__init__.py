"""The process that keeps the queries of the catalog at work in Spark."""
