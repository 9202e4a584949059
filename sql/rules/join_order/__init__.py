"""The order of the joins of a chain: what is known of its inputs, what an order costs, and the one that is taken."""
