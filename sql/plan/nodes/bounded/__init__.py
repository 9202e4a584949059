"""What only bounded queries are made of: rows that are all there, in an order."""
