"""Defines the version of the package, in the only place that has it."""

__version__ = "0.1.0"
