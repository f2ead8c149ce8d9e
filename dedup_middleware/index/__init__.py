"""The pages of a store: keys and values, who holds a clause, open claims, the journal.

Law of this floor: it knows what is stored and how that changes, and gives no verdict.
"""
