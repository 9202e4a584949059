"""A query goes on with its state cut into another number of buckets."""
