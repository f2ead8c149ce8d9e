"""Contains the published extractions of main text, which all look at the `reading` of a page.

An extraction is imported only when it is chosen: `extraction.EXTRACTORS` has their names.
"""
