"""Limits, permissions, URLs and what a terminal shows: what all rooms stand on."""
