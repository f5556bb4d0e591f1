"""Python's look for garbage, in what runs long and makes much."""

import gc

YOUNG = 10_000
"""How many objects are made until Python looks for garbage among them, and after ten such looks further back. By its own
number, 700, a third of a restart with a thousand migrations was that, and half of a sweep over 200 groups
(docs/measurements.md)."""


def look_seldom() -> None:
    """From now on; and never at what is there already, which is what was imported."""
    gc.freeze()
    gc.set_threshold(YOUNG)
