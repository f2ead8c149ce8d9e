"""Stores pages, posting lists, claims, originals in doubt and dropped items, and finds candidates; gives no verdict."""
