"""What a plan keeps of its inputs, and whether anything bounds it."""
