"""What every process of Dovetail begins with: its settings, its log, the order to stop."""
