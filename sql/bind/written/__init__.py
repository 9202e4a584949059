"""What may be written in a query at all, and how what is written reaches the engine: translated, or not."""
