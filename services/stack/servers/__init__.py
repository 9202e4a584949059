"""The servers of the stack: one file each, with how it is started and how one sees that it answers."""
