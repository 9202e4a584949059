"""Records that are meant to break the decoders, read in a process of their own.

nasty       what stands in them
streams     the streams that read them: every format by every type of a column
child       the process, and what counts as a fault: a signal, a second of work, an exception, a word on stderr
__main__    by hand, as many as one likes: ``python -m tests.changelog.fuzz --count 20000``
"""
