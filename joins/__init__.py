"""The incremental operators: pure, on columns, a batch of changes at a time."""
