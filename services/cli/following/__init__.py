"""What goes on while somebody looks: how far a view has come, and rows that change."""
