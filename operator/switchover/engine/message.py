"""What a webhook is sent of a call: a JSON document made of a template, safe whatever text of others is in it."""

import json
from collections.abc import Mapping
from html import escape
from string import Template
from typing import Any

from switchover.engine.calls import Call, News
from switchover.reasons import runbook_of
from switchover.shared.foreign_json import parsed
from switchover.text.visible import printable

SLACK: Mapping[str, Any] = {"text": "$summary"}
"""The template where none is given; Slack, Mattermost, Rocket.Chat and others take such a document."""
FIELDS = ("event", "severity", "summary", "message", "kind", "namespace", "name", "uid", "runbook")

_SAYS = {News.STALLED: "is stalled", News.ROLLING_BACK: "rolls back", News.HELD: "waits for a person",
         News.SUCCEEDED: "has succeeded", News.ROLLED_BACK: "is rolled back"}
_SEVERITY = {News.STALLED: "critical", News.ROLLING_BACK: "warning", News.HELD: "warning", News.SUCCEEDED: "info",
             News.ROLLED_BACK: "info"}


def read_template(text: str) -> Mapping[str, Any]:
    """A template as a JSON object, whose texts name FIELDS as $summary or ${summary}; $$ is a dollar.

    Raises ValueError, which says what is wrong, for anything else.
    """
    found = parsed(text)
    if not isinstance(found, dict):
        raise ValueError("is no JSON object")
    _filled(found, dict.fromkeys(FIELDS, ""))
    return found


def message_of(call: Call, news: News, kind: str, namespace: str, name: str, uid: str, docs: str,
               template: Mapping[str, Any]) -> bytes:
    """The JSON document for the call. Each field is printable, and has the three characters escaped that chats and HTML take
    for their own markup, & < >: no name mentions a channel, makes a link or reverses the text.

    `docs` is the address of a copy of docs/, "" where none is known.
    """
    about = call.about if news in (News.STALLED, News.ROLLING_BACK) else News.HELD.value if news is News.HELD else ""
    fields = {
        "event": news.value, "severity": _SEVERITY[news], "message": call.message, "kind": kind, "namespace": namespace,
        "name": name, "uid": uid, "runbook": f"{docs}/{runbook_of(about)}" if docs and about else "",
        "summary": f"{kind} {namespace}/{name} {_SAYS[news]}: {call.message}",
    }
    safe = {field: escape(printable(value), quote=False) for field, value in fields.items()}
    return json.dumps(_filled(template, safe)).encode()


def _filled(value: Any, fields: Mapping[str, str]) -> Any:
    match value:
        case str():
            try:
                return Template(value).substitute(fields)
            except KeyError as error:
                raise ValueError(f"names ${error.args[0]}, and there are ${', $'.join(FIELDS)}") from None
            except ValueError:
                raise ValueError(f"has a $ before nothing that is a name in {value[:60]!r}; $$ is a dollar") from None
        case dict():
            return {key: _filled(each, fields) for key, each in value.items()}
        case list():
            return [_filled(each, fields) for each in value]
        case _:
            return value
