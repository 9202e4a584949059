"""The cold tier: entries in Redis, shared by all workers, and the locks, invalidations and positions beside them."""
