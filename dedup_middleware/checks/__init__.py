"""Decides whether a page, or an item, repeats a stored one.

It only reads the store. A verdict follows from the page and the store, not from what a process has seen before.
"""
