"""What comes up from below a job, a full disk, a file that is damaged, a JVM that died, in one line."""

from itertools import takewhile
from typing import Any

LONGEST = 1000
"""Characters of a line."""


def from_below() -> tuple[type[Exception], ...]:
    """The exceptions of the libraries that jobs stand on. Spark is imported here, once something was raised."""
    from py4j.protocol import Py4JError
    from pyarrow import ArrowException
    from pyspark.errors import PySparkException

    return OSError, Py4JError, ArrowException, PySparkException


def cause(error: Exception) -> str:
    """The innermost Java exception, which names the file or the host; of a Python worker the last line of its traceback."""
    from pyspark.errors import PythonException

    innermost: Any = getattr(error, "java_exception", None)
    while innermost is not None and (deeper := innermost.getCause()) is not None:
        innermost = deeper
    if innermost is not None:
        lines = innermost.toString().splitlines()
    elif isinstance(error, PythonException):
        lines = str(error).splitlines()[-1:]
    else:
        lines = f"{type(error).__name__}: {error}".splitlines()
    return " ".join(takewhile(lambda line: not line.startswith("\tat "), lines))[:LONGEST]
