"""What several joins, or several sides of one, would each keep is kept once."""
