"""From the logical plan to what hosts run."""
