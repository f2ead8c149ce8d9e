"""Writes, reads, counts and explains the records of crawls."""
