"""Scalar expressions: translated, analysed, run over Arrow tables by DuckDB."""
