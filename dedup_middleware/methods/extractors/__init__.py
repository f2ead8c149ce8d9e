"""The published ways to find the main text of a page, each in a module of its own; `reading` is what they look at.

They are here to be compared, and for whoever prefers one; none is imported unless it is chosen.
"""
