"""Holds what all rooms use: limits, file permissions, URLs, and the registry of what other packages add."""
