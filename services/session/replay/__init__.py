"""REPLAY: dead letters back to the topics that they came from.

outcome       what becomes of each letter
put_back      letters and the mark of them, one transaction after the other
other_readers who else reads what was put back
replay        the statement
"""
