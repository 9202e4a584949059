"""A view computed again as a batch over what its query has counted of its inputs, and compared with what it holds."""
