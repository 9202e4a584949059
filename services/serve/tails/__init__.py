"""Changes as they come: one reader of a topic, however many follow it."""
