"""Contains the published methods of finding near-duplicates, and `compare`, which measures them on a corpus.

A method is imported only when it is chosen: `fingerprints.method.METHODS` has their names.
"""
