"""Values: their types, the conversions between these, and their texts."""
