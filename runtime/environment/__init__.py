"""What stands in the environment of a process under the names of Dovetail."""
