"""What people look at: records, counts, alarms, explanations.

Law of this floor: it tells what has happened, and changes nothing of what happens next.
"""
