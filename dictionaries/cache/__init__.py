"""The parts of the cached layouts: a hot tier in the process, a cold tier in Redis, and what keeps them honest."""
