"""The published methods, each in a module of its own, with what it calls alike.

They are here to be compared, and to decide a crawl for whoever prefers one; none is imported unless it is chosen.
"""
