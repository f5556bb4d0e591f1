"""Text of others, before a person reads it."""

import logging
import re
from html import escape


def printable(text: str) -> str:
    """The text on one line: what cannot be seen (controls, escapes, marks of direction, newlines) as Python writes it."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def counted(count: int, noun: str) -> str:
    """So many of something that takes an s."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def in_markdown(text: str) -> str:
    """The text as Markdown shows it as it is: printable, no markup, no HTML, no cell's end."""
    return re.sub(r"([\\`*_\[\]#|~])", r"\\\1", escape(printable(text), quote=False))


class OneLine(logging.Filter):
    """For the handlers of a log that is text: each message on one line, whatever is in it. JSON escapes by itself."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = printable(record.getMessage()), None
        return True


SECRET = re.compile(r"password|secret|jaas|token|credential|private|certificate|(^|[._])key$", re.IGNORECASE)
"""Keys whose values are hidden: Kafka's settings of type PASSWORD, and what is named like one."""
TELLTALE = re.compile(r"password|-----BEGIN", re.IGNORECASE)
"""Values that are hidden whatever their key is called."""
HIDDEN, EACH_ITS_OWN = "<hidden>", "<each its own>"


def shown(key: str, value: str) -> str:
    """A value, unless it is a secret."""
    return HIDDEN if value and (SECRET.search(key) or TELLTALE.search(value)) else value
