"""How far a query has come in event time: clocks of unions, of what a view tells those who read it."""
