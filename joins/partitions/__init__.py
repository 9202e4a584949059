"""Partitions: rows that agree in some columns, in an order; the first of them, and what is computed over them."""
