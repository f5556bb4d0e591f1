"""For all tests of the pure core: nothing is decided by a fact that nobody named."""

from named_facts import facts_are_named

__all__ = ["facts_are_named"]
