"""Reads what items contain: texts, short values, names; and compares two items of one page."""
