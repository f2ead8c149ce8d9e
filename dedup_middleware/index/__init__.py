"""The pages of a store: keys and values, who holds a clause, open claims, originals in doubt, dropped items.

Law of this floor: it knows what is stored and how that changes, and gives no verdict.
"""
