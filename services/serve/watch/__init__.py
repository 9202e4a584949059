"""How the queries have been in the last hour, as the page shows it: looked at every few seconds, kept in memory."""
