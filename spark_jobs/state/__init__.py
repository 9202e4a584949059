"""What a query resumes from."""
