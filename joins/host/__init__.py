"""What every host does with the operators of a level, and the host that runs in memory."""
