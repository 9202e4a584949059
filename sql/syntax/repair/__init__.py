"""What a statement that cannot be read was meant to be: edits that are tried before they are offered."""
