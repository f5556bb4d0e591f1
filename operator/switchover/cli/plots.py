"""Plots for the pages, as SVG that takes its colours from the page and loads nothing."""

import io
import logging
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module

from markupsafe import Markup, escape

COLOURS = ("work", "hold", "wait", "back", "bake")
"""Classes of the page's style, and its variables but for the fourth; lines beyond them are dashed."""
_VARIABLES = {"back": "undo"}
_INK, _GRID = "#000001", "#000002"
_LINE = "#0001{:02x}"
"""Colours that stand for the page's, so that dark and light do it justice: no other drawing has them."""

Points = tuple[tuple[float, float | None], ...]


def must_draw() -> None:
    """Raise ModuleNotFoundError where there is nothing to draw with, as in the operator's image."""
    import_module("matplotlib")


@lru_cache(maxsize=64)
def drawn(title: str, width: float, lines: tuple[Points, ...], marks: tuple[tuple[float, str], ...]) -> Markup:
    """Lines over 0 to `width`, each value that of the time since the point before; None is left out. `marks` are upright
    lines, with a word where there is room for it."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)           # it logs its caches
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, MaxNLocator

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "text.parse_math": False, "font.size": 8}):
        figure = Figure(figsize=(5.2, 2.1), layout="constrained", facecolor="none")
        FigureCanvasSVG(figure)
        axes = figure.subplots()
        axes.set_facecolor("none")
        for at, points in enumerate(lines):
            axes.plot([x for x, _ in points], [math.nan if y is None else y for _, y in points], drawstyle="steps-pre",
                      linewidth=1.4, color=_LINE.format(at % len(COLOURS)), marker=".", markersize=3,
                      linestyle="--" if is_dashed(at) else "-")
        for x, _ in marks:
            axes.axvline(x, color=_GRID, linewidth=0.8, zorder=0)
        named = _with_room(marks, width)
        axes.set_xticks([x for x, _ in named], [word for _, word in named], rotation=30, ha="right", rotation_mode="anchor")
        axes.set_xlim(0, width)
        axes.set_ylim(0, max(1.0, *(y or 0.0 for points in lines for _, y in points)) * 1.08)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
        axes.yaxis.set_major_formatter(EngFormatter(sep=""))
        axes.tick_params(colors=_INK)
        axes.grid(axis="y", color=_GRID, linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(_INK)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return Markup(_of_the_page(out.getvalue(), title))


def is_dashed(line: int) -> bool:
    """Whether that line is, since its colour is another one's too."""
    return line >= len(COLOURS)


def _with_room(marks: Sequence[tuple[float, str]], width: float) -> list[tuple[float, str]]:
    """Those that do not stand on one another."""
    found: list[tuple[float, str]] = []
    for x, word in marks:
        if not found or x - found[-1][0] >= width / 18:
            found.append((x, word))
    return found


def _of_the_page(text: str, title: str) -> str:
    named = f'<svg class="plot" role="img" aria-label="{escape(title)}" '
    text = re.sub(r' id="[\w.]+_\d+"', "", text[text.index("<svg"):]).replace("<svg ", named, 1)
    for at, name in enumerate(COLOURS):
        text = text.replace(_LINE.format(at), f"var(--{_VARIABLES.get(name, name)})")
    return text.replace(_INK, "var(--dim)").replace(_GRID, "var(--line)")
