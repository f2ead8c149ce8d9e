"""Runs the subcommands of ``scrapy dedup``: `commands` finds them, `call` finds their store and log."""
