"""DuckDB as it is called: the connections to it, and the functions in Python that it calls itself."""
