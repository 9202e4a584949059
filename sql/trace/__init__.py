"""Where the rows of a view come from, and why there are none: its plan, walked over the records of one key."""
