"""Right sides of joins that are looked up, and dict_get."""
