"""Window functions: their trees, and how the engine runs them."""
