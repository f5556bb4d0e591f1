"""The inventory as one page of HTML that needs nothing beside it."""

import io
from collections.abc import Mapping, Sequence

import matplotlib
from jinja2 import Environment

from switchover.pipeline.inventory.group import Group
from switchover.pipeline.inventory.readiness import Readiness
from switchover.pipeline.inventory.waves import Glue, Wave

matplotlib.use("svg")

SHOWN = 500
"""Rows of the table of groups; all of them are in groups.parquet."""
LENGTH = 80
"""Characters of a name that are shown."""


def page(cluster: str, groups: Sequence[Group], judged: Mapping[str, Readiness], waves: Sequence[Wave], glue: Glue | None,
         unknown: Sequence[str], notes: Sequence[str]) -> str:
    """The report."""
    environment = Environment(autoescape=True)
    environment.filters["shown"] = shown
    worst_first = sorted(groups, key=lambda group: (judged[group.name].score, group.name))
    scores = [judged[group.name].score for group in groups]
    lags = sorted((group.lag for group in groups if group.lag is not None), reverse=True)[:50]
    return environment.from_string(TEMPLATE).render(
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

    figure = Figure(figsize=(4.6, 2.4), layout="constrained")
    axes = figure.subplots()
    axes.bar(range(len(values)), values, color="#3465a4")
    axes.set_title(title, fontsize=10)
    axes.set_xticks(range(len(values)) if labels else [], labels or [], fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg"):]


TEMPLATE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Inventory of {{ cluster }}</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .25rem .6rem; vertical-align: top }
th { border-bottom: 2px solid #999 } td { border-bottom: 1px solid #ddd } .n { text-align: right; white-space: nowrap }
.no { color: #a40000 } .plots svg { max-width: 32%; height: auto } td { overflow-wrap: anywhere }
</style>
<h1>Inventory of {{ cluster }}</h1>
<p>{{ total }} groups, {{ ready }} can be migrated, in {{ waves | length }} waves.
{% if glue %}The largest set of connected groups has {{ glue.size }}; topic <b>{{ glue.topic | shown }}</b> holds it together:
without it, the largest part has {{ glue.without }}. To part it, name the topic in <code>inventory.cutTopics</code>.{% endif %}</p>
<div class="plots">{% for plot in plots %}{{ plot | safe }}{% endfor %}</div>
{% if notes %}<h2>What captures could not see</h2><ul>{% for note in notes %}<li>{{ note | shown }}</li>{% endfor %}</ul>{% endif %}
<h2>Waves</h2>
<table><tr><th class="n">wave<th class="n">groups<th class="n">partitions<th>groups, in order<th></tr>
{% for wave in waves %}<tr><td class="n">{{ wave.number }}<td class="n">{{ wave.groups | length }}<td class="n">{{ wave.partitions }}
<td>{% for name in wave.groups[:20] %}{{ name | shown }}{{ ", " if not loop.last }}{% endfor %}{{ ", …" if wave.groups | length > 20 }}
<td>{{ wave.over }}</tr>{% endfor %}</table>
{% if unknown %}<p><b>{{ unknown | length }} of these have no manifest</b>: nothing in <code>inventory.workloads</code> matches
{% for name in unknown[:10] %}{{ name | shown }}{{ ", " if not loop.last }}{% endfor %}{{ ", …" if unknown | length > 10 }}.</p>{% endif %}
<h2>Groups, least ready first</h2>
<table><tr><th>group<th class="n">readiness<th>why<th>coordinated by<th>offsets in<th>protocol<th class="n">members<th class="n">topics
<th class="n">partitions<th class="n">lag</tr>
{% for group in groups %}<tr><td>{{ group.name | shown }}<td class="n {{ 'no' if not judged[group.name].score }}">{{ judged[group.name].score }}
<td>{% for term in judged[group.name].terms %}<div{{ ' class="no"' | safe if term.blocker }}>{{ term.reason }}{{
" (−%d)" | format(term.points) if not term.blocker }}</div>{% endfor %}
<td>{{ group.coordination }}<td>{{ group.storage }}<td>{{ group.protocol }}<td class="n">{{ group.members }}
<td class="n">{{ group.topics | length }}<td class="n">{{ group.partitions }}<td class="n">{{ group.lag if group.lag is not none }}</tr>{% endfor %}
</table>{% if more %}<p>{{ more }} more are in groups.parquet.</p>{% endif %}
</html>
"""
