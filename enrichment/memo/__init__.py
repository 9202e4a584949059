"""The memo of an updating left side: what was emitted for each row, so that it can be taken back."""
