"""How the processes of Dovetail start, listen, fork, and are told to stop."""
