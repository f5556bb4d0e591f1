"""Text of others, before a person reads it."""


def printable(text: str) -> str:
    """The text on one line: what cannot be seen (controls, escapes, marks of direction, newlines) as Python writes it."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
