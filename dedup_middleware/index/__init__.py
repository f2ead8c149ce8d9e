"""Stores pages, posting lists, claims and dropped items, and finds candidates; gives no verdict."""
