"""Joins that keep their inputs alone, by whichever keys they go: step by step, with nothing kept between."""
