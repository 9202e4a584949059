"""What a statement that cannot be read was meant to be: statements of other systems, and slips; tables, and what tries
them.
"""
