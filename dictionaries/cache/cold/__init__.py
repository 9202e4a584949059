"""The cold tier: entries in Redis, shared by all workers."""
