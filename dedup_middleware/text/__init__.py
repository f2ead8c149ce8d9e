"""Splits text into clauses, sentences, words and titles; imports nothing but values of the ground floor."""
