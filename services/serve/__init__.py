"""``dovetail serve``: SQL, changes and what there is, over HTTP, from one process at one port.

process       the port, TLS, start and end
application   all routes behind one gate
gate          what every request has to pass: host, origin, user
dependencies  what the routes are given, and what is checked of every request
refusals      errors as answers
access/       users, tokens, roles
statements/   statements run within bounds, their results as lines or Arrow
tails/        one reader for all who follow the changes of a view
routes/       the answers, one file for each kind of question
"""
