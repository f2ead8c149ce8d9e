"""The subcommands of ``scrapy dedup``, a module each: its options, and what it does.

A module has ``EXAMPLES``, command lines without ``scrapy dedup``; ``add_options(parser)``; and ``run(call)``, which
prints to standard output and returns the exit status, ``None`` for 0. It is loaded when it is called. The work itself
is done elsewhere.
"""
