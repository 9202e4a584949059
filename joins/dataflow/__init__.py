"""A query as hosts run it: ports, operators' specifications, the graph between them."""
