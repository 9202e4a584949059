"""The conformance runner: cases are data, run through an engine and judged by their expected changes."""
