"""The HTTP server under everything that a stranger can send, in a process that is watched from outside."""
