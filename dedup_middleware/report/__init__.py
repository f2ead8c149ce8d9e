"""Makes the HTML report of what was dropped: `data` reads log and store, and `page` writes the file.

The file is complete: charts and table are in it, from `libraries/`, which has them as npm packs them.
"""
