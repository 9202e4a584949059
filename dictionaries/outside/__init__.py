"""What a statement may make a process open, and where it may make it connect."""
