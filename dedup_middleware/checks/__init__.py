"""Decides whether a page, or an item, repeats a stored one.

It only reads the store. What it learns about sites and templates is in memory.
"""
