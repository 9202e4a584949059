"""Many small views share one streaming query: a pack."""
