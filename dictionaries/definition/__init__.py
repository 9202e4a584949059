"""What a dictionary is, as it is declared."""
