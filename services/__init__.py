"""The processes a person starts: the command line, the workers, and the local stack they run on."""
