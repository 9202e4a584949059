"""Names to columns: from syntax to the logical plan."""
