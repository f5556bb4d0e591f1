"""The inventory as one page of HTML that loads nothing."""

import io
from collections.abc import Mapping, Sequence
from importlib import resources

import matplotlib
from jinja2 import Environment

from switchover.pipeline.inventory.readiness import Group, Readiness
from switchover.pipeline.inventory.waves import Glue, Wave

matplotlib.use("svg")

SHOWN = 500
"""Rows of the table of groups; all of them are in groups.parquet."""
LENGTH = 80
"""Characters of a name that are shown."""
FEWEST_BARS = 6
"""That a plot has room for, lest one bar fills it."""


def page(cluster: str, groups: Sequence[Group], judged: Mapping[str, Readiness], waves: Sequence[Wave], glue: Glue | None,
         unknown: Sequence[str], notes: Sequence[str]) -> str:
    """The report."""
    template = resources.files(__package__).joinpath("report.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True)
    environment.filters["shown"] = shown
    worst_first = sorted(groups, key=lambda group: (judged[group.name].score, group.name))
    scores = [judged[group.name].score for group in groups]
    lags = sorted((group.lag for group in groups if group.lag is not None), reverse=True)[:50]
    return environment.from_string(template).render(
        cluster=cluster, groups=worst_first[:SHOWN], more=max(0, len(groups) - SHOWN), judged=judged, waves=waves, glue=glue,
        unknown=unknown, notes=list(dict.fromkeys(notes)), ready=sum(score > 0 for score in scores), total=len(groups),
        plots=[_bars("Groups by readiness", [sum(low <= score < low + 20 for score in scores) for low in range(0, 101, 20)],
                     [f"{low}…" for low in range(0, 101, 20)]),
               _bars("Groups in each wave", [len(wave.groups) for wave in waves[:50]]),
               _bars("Largest lags, records", lags)])


def shown(name: str) -> str:
    """A name as a person may read it: what is not printable, or turns the direction of writing, as its escape."""
    text = "".join(each if each.isprintable() and not 0x202A <= ord(each) <= 0x2069 else ascii(each)[1:-1] for each in name)
    return text if len(text) <= LENGTH else f"{text[:LENGTH]}… ({len(name)} characters)"


def _bars(title: str, values: Sequence[int], labels: Sequence[str] | None = None) -> str:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(4.6, 2.4), layout="constrained")
    axes = figure.subplots()
    axes.bar(range(len(values)), values, color="#3465a4")
    axes.set_xlim(-0.6, max(len(values), FEWEST_BARS) - 0.4)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title(title, fontsize=10)
    axes.set_xticks(range(len(values)) if labels else [], labels or [], fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg"):]
