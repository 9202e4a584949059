"""Streams whose rows are generated: ``WITH (connector = 'datagen', ..)``, and CREATE RANDOM STREAM.

A row is a function of its number, of the seed of its columns and of the time at which it is made: whoever goes on at
row n makes the rows that would have followed, and the rows of two streams declared alike are alike.
"""
