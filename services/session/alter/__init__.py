"""ALTER: what exists goes on with another definition."""
