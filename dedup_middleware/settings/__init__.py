"""DEDUP_* settings -> one frozen value, :class:`~dedup_middleware.settings.config.Config`.

Law of this floor: a setting is written down once, in `table`, and nobody else reads one.
"""
