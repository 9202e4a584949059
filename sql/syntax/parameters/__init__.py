"""Values that are given beside a statement: ``?`` and ``:name`` in its text, bound as literals of its trees."""
