"""Decides whether a page repeats a stored page. Reads the index, writes nothing."""
