"""What the processes of Dovetail have in common: settings, log lines, the order to stop, queries kept as wanted."""
