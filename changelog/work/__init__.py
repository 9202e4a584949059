"""Work that may end before it is done, that is tried again, and that goes on by itself."""
