"""Drives pages through their states: opens the store, decides on items, releases what was dropped."""
