"""A running view seen from within: what each node of its plan has done, and what it holds."""
