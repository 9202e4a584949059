"""What a query has come to, and what its log says of it."""
