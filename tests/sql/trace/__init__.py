"""Where rows come from, over records in memory."""
