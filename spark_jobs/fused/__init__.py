"""Queries in one bucket: one task of Spark reads, computes and writes a batch."""
