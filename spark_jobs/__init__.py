"""The Spark host, thin files around the operators: source, decode, level, sink, and the query that joins them."""
