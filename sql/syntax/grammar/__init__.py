"""The grammar of statements: one file per kind, each a few functions from a cursor over tokens to a statement."""
