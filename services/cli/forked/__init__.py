"""Commands that are copies of an interpreter which has imported what they need."""
