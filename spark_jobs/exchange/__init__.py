"""What crosses an exchange."""
