"""What the lookups of a query ask: dictionaries, external tables, followed streams."""
