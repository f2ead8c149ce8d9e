"""Text -> clauses, sentences, words, titles.

Law of this floor: strings in, strings and numbers out. It imports the ground floor only.
"""
