"""The records of a topic, as a person looks at them."""
