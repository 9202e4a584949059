"""Commands to the lookup workers and their answers: what both ends write and read (docs/topics.md)."""
