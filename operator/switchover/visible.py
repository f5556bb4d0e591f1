"""Text of others, before a person reads it."""

import re


def printable(text: str) -> str:
    """The text on one line: what cannot be seen (controls, escapes, marks of direction, newlines) as Python writes it."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


SECRET = re.compile(r"password|secret|jaas|token|credential|private|certificate|(^|[._])key$", re.IGNORECASE)
"""Keys whose values are hidden: Kafka's settings of type PASSWORD, and what is named like one."""
TELLTALE = re.compile(r"password|-----BEGIN", re.IGNORECASE)
"""Values that are hidden whatever their key is called."""
HIDDEN, EACH_ITS_OWN = "<hidden>", "<each its own>"


def shown(key: str, value: str) -> str:
    """A value, unless it is a secret."""
    return HIDDEN if value and (SECRET.search(key) or TELLTALE.search(value)) else value
