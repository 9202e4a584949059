"""From the rows that reach a port to changes: what records mean, in which order they came, how far time has come."""
