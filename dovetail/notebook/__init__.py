"""Cells of SQL in a notebook: ``%load_ext dovetail``.

options     what the line of a magic says
magics      %dovetail, %%dovetail and %dovetail_changes
workplace   the session of a notebook, and the stack behind it
tables      rows as a notebook shows them
live_table  rows as they come
failures    errors without a traceback
"""
