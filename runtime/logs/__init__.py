"""What processes and queries have to say: lines, files of bounded size, and how these are read."""
