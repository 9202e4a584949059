"""What operators remember: arrangements of sorted runs, searches in them, their durable copy."""
