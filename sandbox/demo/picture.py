"""The tree of a migration as a picture, for the pages that show a demo."""

import re
from io import StringIO

from rich.console import Console

from switchover.cli.display import tree
from switchover.cli.objects import Resource


def picture(resource: Resource, now: float) -> str:
    """The tree as SVG, in the viewer's own fixed-width font."""
    console = Console(record=True, width=120, file=StringIO())
    console.print(tree(resource, now))
    fonts_from_elsewhere = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
    return fonts_from_elsewhere.sub("", console.export_svg(title="make demo"))
