"""Rows in an order: their first ones, and what window functions compute over them."""
