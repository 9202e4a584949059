"""Scalar functions: what each is called, takes, gives and means, in each dialect; and their translation to DuckDB."""
