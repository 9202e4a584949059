"""The tests: one folder per layer, the conformance runner and its cases."""
