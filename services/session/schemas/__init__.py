"""Schemas of streams whose values name them: checked, or registered, when the stream is created."""
