"""NOTICE: the licence of every package that we ship, as its own metadata says. `python tests/notice.py` writes it."""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
NOTICE = ROOT / "NOTICE"
SHIPPED = ("operator", "pipeline", "cli", "consumer")
"""Whose locked requirements the images and the extras of the wheel install."""
ALLOWED = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "MIT-CMU", "PSF-2.0", "Zlib",
    "Apache 2.0", "Apache Software License", "BSD License", "ISC License", "MIT License",
    "Python Software Foundation License",
    "LGPL-2.1-or-later",                # crc32c, a module that we import and do not change
    "MPL-2.0",                          # certifi, a file of certificates that we do not change
}
"""What may be shipped, in the words of packages' metadata. The GPL may not: it is for tools of the developer alone."""
HEAD = """Switchover
Licensed under the Apache License, Version 2.0 (LICENSE).

The wheel holds our own code alone. The images hold the packages below as well, each under the licence that its metadata
names; the texts lie beside it, in site-packages/NAME-VERSION.dist-info. Native libraries that a wheel brings along
(librdkafka and OpenSSL, RE2, OpenBLAS and GCC's runtime libraries, Arrow, libjpeg and the like) are under the licences that
lie there, too. The pipeline's image holds Apache Spark's jars, whose licences lie in site-packages/pyspark/licenses, and
OpenJDK (GPL-2.0 with the Classpath exception). Debian's packages have theirs in /usr/share/doc/NAME/copyright.
`make notice` writes this file.

"""


def locked(extra: str) -> Iterator[str]:
    """Names of what it installs here: on Linux, by CPython 3.11, as in the images."""
    for line in (ROOT / "requirements" / f"{extra}.txt").read_text().splitlines():
        if re.match(r"\w", line):
            requirement = Requirement(line.removesuffix("\\").strip())
            if requirement.marker is None or requirement.marker.evaluate():
                yield requirement.name


def licence(package: str) -> str:
    """What its metadata says: an expression, else a name, else classifiers. "unknown" for one that says nothing."""
    told = metadata(package)
    named = (told.get("License-Expression") or told.get("License") or "").strip()
    if named and len(named) < 80 and "\n" not in named:
        return named
    classifiers = (each for each in told.get_all("Classifier") or () if each.startswith("License :: OSI Approved :: "))
    return " AND ".join(each.rpartition(" :: ")[2] for each in classifiers) or "unknown"


def is_allowed(text: str) -> bool:
    """Every part of it, or one of those that it leaves to choose from."""
    return all(any(each in ALLOWED for each in part.split(" OR ")) for part in text.strip("()").split(" AND "))


def notice() -> str:
    """The whole file. Raises ValueError, with their names, where packages have a licence that may not be shipped."""
    images = {extra: set(locked(extra)) for extra in SHIPPED}
    licences = {package: licence(package) for package in sorted(set().union(*images.values()))}
    if refused := [f"{package}: {text}" for package, text in licences.items() if not is_allowed(text)]:
        raise ValueError(f"licences that may not be shipped: {'; '.join(refused)}")
    return HEAD + "".join(f"{package:<22} {text:<56} {', '.join(each for each in SHIPPED if package in images[each])}\n"
                          for package, text in licences.items())


if __name__ == "__main__":
    try:
        NOTICE.write_text(notice())
    except ValueError as error:
        sys.exit(str(error))
