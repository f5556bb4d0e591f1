"""No sentence is read as data: what a move, a finding or a fault is, its type says."""

import pytest

from unit.commands_of_source import sources
from unit.given_reasons import SOURCE
from unit.sentences_of_source import compared


def test_nothing_is_compared_with_a_sentence() -> None:
    assert not [*compared(sources(SOURCE))]


@pytest.mark.parametrize("code", [
    "move.message.startswith('turned ')", "message.startswith(f'{step} begins')", "'waits again' in move.message",
    "text(each['message']) == 'no answer'", "each.get('message') != 'no answer'", "re.match('taking \\\\S+ back', message)",
    "UNSTARTABLE in why", "why in (UNSTARTABLE, '')"])
def test_a_comparison_with_a_sentence_is_found(code: str) -> None:
    assert [*compared({"a.py": f'UNSTARTABLE = "and no broker starts"\n{code}\n'})] == [f"a.py:2: {code}"]


def test_one_of_several_sentences_is_found() -> None:
    code = 'any(word in move.message for word in ("starts anew", " is void"))'
    assert [*compared({"a.py": code})] == ["a.py:1: word in move.message"]


@pytest.mark.parametrize("code", [
    'message == ""', 'move.reason == "Moved"', 'name.startswith("of the")', 'text.startswith("kmig/")', 'why = "no answer"',
    're.search(rf"(^|\\s){name}: ", message)', '"-" in message'])
def test_other_comparisons_are_fine(code: str) -> None:
    assert not [*compared({"a.py": code})]
