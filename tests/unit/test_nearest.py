"""A name that is not there: which one was meant, or which there are."""

import pytest

from switchover.text.nearest import found, meant, nearest


@pytest.mark.parametrize(("written", "there", "said"), [
    ("kafak", ["zookeeper", "kafka", "kafka-controller"], " (did you mean kafka?)"),
    ("finalize", ["Soak", "Finalize"], " (did you mean Finalize?)"),
    ("kafka", ["db", "kafka-broker"], " (did you mean kafka-broker?)"),
    ("orders", ["kafka", "zookeeper"], ""),
    ("orders", [], ""),
])
def test_a_name_like_it_is_named_whatever_its_case(written: str, there: list[str], said: str) -> None:
    assert meant(written, there) == said


def test_where_none_is_alike_it_says_which_there_are_and_not_all_of_many() -> None:
    assert found("orders", ["b", "a"]) == " (there are: a, b)"
    assert found("orders", "abcdefg") == " (there are: a, b, c, d, e …)"
    assert found("", ["fast"]) == " (there are: fast)"
    assert (found("orders", []), found("order", ["orders", "x"])) == ("", " (did you mean orders?)")
    assert nearest("soka", ["Soak", "Stop", "Soaks"], 2) == ["Soak", "Soaks"]
