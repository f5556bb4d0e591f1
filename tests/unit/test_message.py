"""What the webhook is sent: JSON whatever is in it, and nothing that a chat takes for more than text."""

import json
from typing import Any

import pytest

from switchover.engine.calls import Call, News, stopped
from switchover.engine.message import FIELDS, SLACK, message_of, read_template
from switchover.reasons.walk import INVALID_SPEC

STALLED = Call("Stalled", "GroupLag", "GroupLag: the group orders is 5 behind", warning=True, news=News.STALLED)
DOCS = "https://git.example.com/docs"


def sent(call: Call = STALLED, template: Any = SLACK, docs: str = DOCS, name: str = "kafka") -> Any:
    assert call.news is not None
    return json.loads(message_of(call, call.news, "KafkaMigration", "shop", name, "uid-1", docs, template))


def test_each_field_says_what_it_is_called() -> None:
    assert sent(template={field: f"${field}" for field in FIELDS}) == {
        "event": "Stalled", "severity": "critical", "kind": "KafkaMigration", "namespace": "shop", "name": "kafka",
        "uid": "uid-1", "message": "GroupLag: the group orders is 5 behind",
        "summary": "KafkaMigration shop/kafka is stalled: GroupLag: the group orders is 5 behind",
        "runbook": f"{DOCS}/runbooks/lag.md#grouplag"}


@pytest.mark.parametrize(("call", "summary", "severity", "runbook"), [
    (stopped(INVALID_SPEC, "spec.brokers: missing"), "is stalled: spec.brokers: missing", "critical",
     f"{DOCS}/runbooks/walk.md#invalidspec"),
    (Call("AutomaticRollback", "GroupLag", "by itself from Canary for GroupLag", warning=True, news=News.ROLLING_BACK),
     "rolls back: by itself from Canary for GroupLag", "warning", f"{DOCS}/runbooks/lag.md#grouplag"),
    (Call("AwaitingApproval", "Finalize", "Finalize waits", warning=False, news=News.HELD),
     "waits for a person: Finalize waits", "warning", f"{DOCS}/runbooks/AwaitingApproval.md"),
    (Call("Succeeded", "1", "on KRaft", warning=False, news=News.SUCCEEDED), "has succeeded: on KRaft", "info", ""),
    (Call("RolledBack", "1", "it is back", warning=False, news=News.ROLLED_BACK), "is rolled back: it is back", "info", ""),
])
def test_each_news_has_its_words(call: Call, summary: str, severity: str, runbook: str) -> None:
    assert sent(call, ["$summary", "$severity", "$runbook"]) == [f"KafkaMigration shop/kafka {summary}", severity, runbook]
    assert sent(call, "$runbook", docs="") == ""


@pytest.mark.parametrize(("wild", "tame"), [
    ("<!channel> & <https://evil|cure>", "&lt;!channel&gt; &amp; &lt;https://evil|cure&gt;"),
    ('"},"text":"', '"},"text":"'),
    ("$uid ${uid} $$", "$uid ${uid} $$"),
    ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
    ("order‮s\u2066", "order\\u202es\\u2066"),
    ("two\nlines", "two\\nlines"),
    ("half a pair \ud800", "half a pair \\ud800"),
    ("Bestellungen ä 注文", "Bestellungen ä 注文"),
])
def test_words_of_others_are_text_and_nothing_else(wild: str, tame: str) -> None:
    call = Call("Stalled", "GroupLag", wild, warning=True, news=News.STALLED)
    assert sent(call) == {"text": f"KafkaMigration shop/kafka is stalled: {tame}"}
    assert sent(call, {"$message": "$name"}, name=wild) == {"$message": tame}


def test_a_template_is_any_json_object() -> None:
    text = json.dumps({"dedup": "$uid", "n": 1, "on": True, "none": None, "list": [{"cost": "$$5"}, "${kind}s"]})
    assert sent(template=read_template(text)) == {
        "dedup": "uid-1", "n": 1, "on": True, "none": None, "list": [{"cost": "$5"}, "KafkaMigrations"]}


@pytest.mark.parametrize(("text", "words"), [
    ("{", "Expecting property name"),
    ('"$summary"', "is no JSON object"),
    ('{"text": "$sumary"}', "names $sumary, and there are $event, $severity, $summary"),
    ('{"a": [{"b": "costs 5 $"}]}', "has a $ before nothing that is a name in 'costs 5 $'; $$ is a dollar"),
    (f'{"[" * 70}1{"]" * 70}', "nests deeper than 64 levels"),
])
def test_a_template_that_is_none_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        read_template(text)
    assert words in str(refused.value)
