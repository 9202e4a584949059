"""What stands in FROM: items under their aliases, windows, joins and what is said with them."""
