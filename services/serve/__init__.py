"""``dovetail serve``: SQL, changes and what there is, over HTTP, from one process at one port.

process              the port, TLS, start and end
orderly_server       the server within it, which ends when it is told to
application          all routes, and every error as an answer
security_middleware  what every request has to pass: host, origin, user
dependencies         what the routes are given, and what is checked of every request
refusals             errors as answers
nearest_address      what is asked for in place of an address at which there is nothing
access/              users, tokens, roles
statements/          statements run within bounds, their results as lines or Arrow
tails/               one reader for all who follow the changes of a view
routes/              the answers, one file for each kind of question
"""
