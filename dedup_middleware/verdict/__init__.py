"""page -> verdict: the detector, the second opinion, the witnesses, the evidence.

Law of this floor: it decides and never acts: it writes to no store, and what it learns is in memory.
"""
