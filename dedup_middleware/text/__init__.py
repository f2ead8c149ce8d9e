"""Splits text into clauses, sentences, words and titles, and fits it to a terminal."""
