"""Holds back the requests that are thought to repeat something, and samples them; never drops an item."""
