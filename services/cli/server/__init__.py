"""The commands on the HTTP server and its users."""
