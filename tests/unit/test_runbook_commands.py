"""The commands of the runbooks can be pasted, and each is run by a test or is listed with the reason why not."""

import re

import pytest

from runbook_commands import NAMED, TOOLS, UNTRIED, commands, in_block, in_text, written
from switchover.cli.explain import explain
from unit.commands_of_source import KAFKAS

COMMANDS = {each.text: each for each in commands()}


def test_a_command_is_a_line_of_a_block_or_goes_on_where_a_quote_does() -> None:
    text = "Run `kubectl get pods` or `status`:\n\n```\n# why\nkubectl patch x \\\n  '{\"a\":\n 1}'    # what\n\nx: y\n```\n"
    assert [*in_text(text)] == ["kubectl patch x \\\n  '{\"a\":\n 1}'", "kubectl get pods"]
    assert [*in_block("a 'b # c' d\n")] == ["a 'b # c' d"]


def test_what_only_names_a_command_is_still_there_and_has_a_reason() -> None:
    assert {*NAMED, *UNTRIED} <= {each.text for each in written()}


def test_each_command_is_run_by_a_test() -> None:
    assert [str(each) for text, each in COMMANDS.items() if not re.match(rf"(?:{TOOLS}) ", text)] == []


@pytest.mark.parametrize("text", COMMANDS, ids=lambda text: text[:60])
def test_a_command_can_be_pasted(text: str) -> None:
    assert not re.search(r"…|<\w+>", text), "what is to be put in stands in capitals; `<` reads a file"
    assert not KAFKAS.match(text) or re.search(r" --bootstrap-(server|controller) ", text), "Kafka's tools want a server"
    assert " --show-managed-fields" not in text or " --output yaml " in text, "no other output has those fields"
    assert not re.search(r"\?|\\[^\n]", re.sub(r"'[^']*'", "", text)), "a shell would take these for its own"


@pytest.mark.parametrize("text", [text for text in COMMANDS if text.startswith("switchover explain ")])
def test_what_explains_has_an_explanation(text: str) -> None:
    assert explain(text.split()[2].replace("REASON", "GroupLag"))
