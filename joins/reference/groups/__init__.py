"""References of what is made of rows together: groups, sessions, partitions in an order."""
