"""The tests: one folder per room, the conformance runner and its cases."""
