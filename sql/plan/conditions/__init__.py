"""What the clauses of a join say of its sides, made into columns, keys, an inequality, times to wait for."""
