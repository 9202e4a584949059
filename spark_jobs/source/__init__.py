"""Kafka as a source of Spark."""
