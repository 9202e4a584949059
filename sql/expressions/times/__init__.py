"""Times in expressions: how fine they are."""
