"""Nothing that others named does anything to a terminal."""

import io

import pytest
from rich.console import Console

from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cli.terminal import clean
from switchover.cli.tree import changes, tree
from switchover.visible import printable

EVIL = "\x1b[2J\x1b]0;title\x07 a\nb\r\u202egnp\u2066x\u200f\x9b31m\u2028"


@pytest.mark.parametrize("text", ["plain", "Übergabe → 7", "'quoted' \"twice\""])
def test_what_can_be_seen_stays(text: str) -> None:
    assert printable(text) == text


def test_escapes_marks_of_direction_and_line_ends_are_written_out() -> None:
    shown = printable(EVIL)
    assert shown.isprintable()
    assert shown.startswith(r"\x1b[2J\x1b]0;title\x07 a\nb\r\u202egnp\u2066x")


def test_every_text_of_a_value_is_cleaned_keys_as_well() -> None:
    assert clean({"a\n": [EVIL, 7, None, True, {"b": "\u202e"}]}) == {
        r"a\n": [printable(EVIL), 7, None, True, {"b": r"\u202e"}]}


def test_the_tree_and_the_lines_of_an_object_that_others_have_named_are_clean() -> None:
    wait = {"gate": "G", "verdict": "Wait", "reason": "R", "subject": EVIL, "message": EVIL, "unblocks": EVIL}
    resource = {
        "kind": "KafkaMigration", "metadata": {"name": EVIL, "namespace": EVIL},
        "status": {"phase": "Running", "progress": {"step": "MoveBrokers", "batch": 1, "batchNodes": [EVIL]},
                   "nodes": [{"name": EVIL, "assigned": Mode.KRAFT, "observed": Mode.MIGRATION}], "waitingFor": [wait]}}
    out = io.StringIO()
    Console(file=out, width=2000, force_terminal=False).print(tree(resource, 0.0))
    assert all(line.isprintable() for line in out.getvalue().splitlines())
    assert r"\u202egnp" in out.getvalue()
    assert all(line.isprintable() for line in changes(None, resource))
