"""What the process of the HTTP server shares with those that start it: its settings."""
