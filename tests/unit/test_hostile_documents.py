"""Whatever somebody writes into a znode, an annotation or a termination message: a value, or the documented error."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from switchover.api import job_message
from switchover.consumer import reading
from switchover.coordination import acknowledgement, registration
from switchover.coordination.mode import parsed as mode
from switchover.coordination.registration import Malformed, Registration, Subscribed
from switchover.kubernetes import reports
from switchover.kubernetes.client import ownership
from switchover.lag import baseline
from switchover.metadata import node_json
from switchover.process.run import DEEPEST
from switchover.shared import foreign_json
from switchover.zookeeper.client import znodes

DEEP = "[" * 1_500 + "]" * 1_500
TEXTS = [
    "", " ", "\0", "\ufeff{}", "{", "}", "[]", "null", "true", "0", "-0", "1e999", "-1e999", "NaN", "Infinity", "-Infinity",
    '"', '"\\ud800"', "9" * 5_000, "²", "٣", "{}{}", '{"a":1,"a":2}', "[" * 100_000,
    '{"a":' * 1_200 + "1" + "}" * 1_200, DEEP,
    "[" * 65 + "]" * 65, "\u202e{}", "a" * 100_000, "(a+)+b", "%s%n", "{0}", "../../etc/passwd", "$(id)",
    "\x1b[2J", "--- !!python",
]
VALUES: list[Any] = [
    None, True, -1, 0, 2**31, 2**63, 10**400, 0.5, "", "a", "²", "\0", "\ud800", "9" * 5_000, [], [[]], {}, {"": None},
    [None], ["a", 1], {"a": {"b": [1]}}, [0] * 1_000, float("nan"), float("inf"),
]
"""In the place of each part of what is right."""

READERS: list[tuple[Callable[[bytes], Any], Any, type[Exception] | tuple[type[Exception], ...]]] = [
    (registration.decoded, {"version": 1, "subscription": {"t": 1}, "pattern": "static", "timestamp": "1"}, Malformed),
    (acknowledgement.decoded,
     {"version": 1, "mode": "kafka", "modeVersion": 1, "generation": 2, "owned": {"t": [0]}, "waits": ""}, ()),
    (mode, "kafka", ()),
    (lambda data: reading.partitions("t", data), {"version": 1, "partitions": {"0": [1], "1": [2]}}, reading.NoTopic),
    (lambda data: job_message.read(data.decode(errors="replace")).audit_verdict(),
     {"version": 1, "verdict": "Clean", "evidence": ["a"], "reason": ""}, ValueError),
    (lambda data: ownership.applied_by({"metadata": {"managedFields": [], "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": data.decode(errors="replace")}}}),
     {"spec": {"template": {"spec": {"volumes": [{"name": "config"}]}}}}, ()),
    (lambda data: reports.disks(data.decode(errors="replace")), "disks 1 0 1 2 3", ()),
    (lambda data: baseline.parse(data.decode(errors="replace"), "g"), {"group": "g", "until": 1}, ValueError),
    (node_json.document, {"version": 1}, ValueError),
    (foreign_json.first, {"version": 1}, ValueError),
    (znodes.integer, 1, ValueError),
    (znodes.cluster_id, {"version": "1", "id": "MkU3OEVBNTcwNTJENDM2Qg"}, ValueError),
    (lambda data: znodes.controller(data, 7, 3),
     {"version": 2, "brokerid": 1, "timestamp": "1", "kraftControllerEpoch": 5}, ValueError),
    (lambda data: znodes.migration(data, 1, 2),
     {"version": 0, "kraft_metadata_offset": 1, "kraft_controller_id": 3000, "kraft_metadata_epoch": 1,
      "kraft_controller_epoch": 2}, ValueError),
    (znodes.endpoints,
     {"version": 5, "endpoints": ["PLAINTEXT://a:9092"], "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
      "host": "a", "port": 9092, "features": {}}, ValueError),
    (znodes.topic, {"version": 3, "partitions": {"0": [1]}, "topic_id": "AAAAAAAAAAAAAAAAAAAAAA", "adding_replicas": {},
                    "removing_replicas": {}}, ValueError),
    (znodes.partition_epoch, {"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1]}, ValueError),
    (znodes.reassigning, {"version": 1, "partitions": []}, ValueError),
]


def changed(right: Any) -> Iterator[Any]:
    """What is right with each of its parts left out, and each of VALUES in the place of each."""
    yield from VALUES
    if isinstance(right, dict):
        for key, value in right.items():
            yield {name: each for name, each in right.items() if name != key}
            yield from ({**right, key: each} for each in changed(value))
            yield {**right, "\0" + key: value}
    elif isinstance(right, list):
        for at, value in enumerate(right):
            yield from ([*right[:at], each, *right[at + 1:]] for each in changed(value))


def corpus(right: Any) -> Iterator[bytes]:
    whole = json.dumps(right).encode()
    yield whole
    yield from (text.encode(errors="surrogatepass") for text in TEXTS)
    yield from (whole[:end] for end in range(len(whole)))
    yield from (whole.replace(b"a", byte) for byte in (b"\xff", b"\xed\xa0\x80"))
    yield from (json.dumps(each).encode() for each in changed(right))


def test_there_are_enough_of_them() -> None:
    assert sum(len(list(corpus(right))) for _, right, _ in READERS) > 3_000


@pytest.mark.parametrize(("read", "right", "errors"), READERS, ids=range(len(READERS)))
def test_every_reader_answers_or_says_why_not(read: Callable[[bytes], Any], right: Any, errors: Any) -> None:
    for data in corpus(right):
        try:
            read(data)
        except errors as error:
            if len(str(error)) > 1_000:
                raise AssertionError(f"too long for a line of a status: {error}") from error
        except Exception as stray:
            raise AssertionError(f"{type(stray).__name__} {str(stray)[:100]} for {data[:200]!r}") from stray


@pytest.mark.parametrize(("text", "words"), [
    (DEEP, "nests deeper"), ("[" * 65 + "]" * 65, "nests deeper"), ("[" * 5_000, "nests deeper|Expecting"),
    ("NaN", "NaN is no number"), ("[-Infinity]", "-Infinity is no number"), ("1e999", "too large"), ("{", "Expecting"),
    (b"\xff", "utf-8")])
def test_what_is_no_document(text: str | bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        foreign_json.parsed(text)


@pytest.mark.parametrize("text", ["[" * 1_000_000, '{"a":' * 1_000_000, '{"a":[' * 29_000 + "]}" * 29_000])
def test_the_reader_stays_on_its_stack_however_deep_the_operator_lets_it(text: str) -> None:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(DEEPEST)
    try:
        with pytest.raises(ValueError, match="nests deeper"):
            foreign_json.parsed(text)
    finally:
        sys.setrecursionlimit(before)


def test_what_is_one() -> None:
    assert foreign_json.parsed("[" * 64 + "]" * 64) is not None
    assert foreign_json.parsed(b'{"a": [1, 2.5, "x", null, true]}') == {"a": [1, 2.5, "x", None, True]}


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|aa)+b", "(.*)*b", "(a*)*" * 20 + "b"])
def test_a_pattern_takes_no_longer_than_a_topic_is_long(pattern: str) -> None:
    """40 letters took Python's own engine hours, and the whole process stood still for it."""
    began = time.thread_time()
    assert Registration({pattern: 1}, Subscribed.WHITE_LIST).streams(["a" * 249] * 100, exclude_internal=True) == {}
    assert time.thread_time() - began < 2


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "a{1001}", "\ud800", "((((" * 300])
def test_a_pattern_that_cannot_be_compiled(pattern: str) -> None:
    with pytest.raises(Malformed, match="cannot be compiled"):
        Registration({pattern: 1}, Subscribed.WHITE_LIST).streams(["a"], exclude_internal=True)
