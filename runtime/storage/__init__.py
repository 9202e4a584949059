"""Where checkpoints are kept: a folder, or a prefix of an object store."""
