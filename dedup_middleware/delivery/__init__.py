"""What makes a drop safe: claims, sealing, the journal of drops, taking back, restoring.

Law of this floor: nothing is withheld before the store knows of it, nor after anything has failed.
"""
