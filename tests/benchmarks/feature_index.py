"""What an index from features to pages costs: a sorted container in memory beside the stores on disk.

Usage: python tests/benchmarks/feature_index.py [--features 10000 100000 1000000] [--lookups 20000]
Features are random, of 8 bytes as those of the published methods, 20 on a page; a page has a number of 8 bytes. The
index leads from a feature to its page. Features are written page by page, in batches of as many pages as there are in
100, and looked up page by page, half of them known. In memory it is a ``SortedDict``: no red-black tree, but sorted
lists of at most two thousand keys, with the same O(log n) for both in all but name. No red-black tree for Python is
kept up.

Prints a Markdown table: the microseconds of inserting a feature and of looking one up, and the bytes that one takes, of
memory or of files. A million features take half a minute.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import tempfile
import time
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from dedup_middleware.stores import open_store
