"""Whether values of one JSON Schema are values of another: the rules by which schemas of a subject follow each other.

parts      a schema as constraints that all hold; where its references lead
bounds     lengths, numbers, patterns: constraints that hold no schemas
coverage   the comparison
"""
