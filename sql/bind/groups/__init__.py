"""The forms of GROUP BY that are more than a list of keys."""
