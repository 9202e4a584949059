"""What may end before it is done."""
