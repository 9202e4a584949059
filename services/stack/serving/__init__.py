"""The components that answer over HTTP."""
