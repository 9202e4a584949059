"""A schema registry for the local stack: the part of Confluent's API that its clients use, over one SQLite file.

process         the port, start and end
protection      who gets in
application     the routes, and what every request passes before
store           the file: schemas by id, versions by subject, levels
subjects        what a request does
compatibility   whether one schema may follow another
refusals        errors in the registry's own form and numbers
"""
