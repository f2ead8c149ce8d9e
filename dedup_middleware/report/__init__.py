"""A page to look at what was dropped: `data` reads log and store, `page` makes HTML of it, `rows` a table.

It needs nothing from anywhere when it is opened: `libraries/` has the charts and the table, as `vendor` fetched them.
"""
