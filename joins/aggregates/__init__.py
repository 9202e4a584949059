"""Groups: one row for each, kept up to date by its changes."""
