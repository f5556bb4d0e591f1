"""The JVMs' name cache is cut short, and options of the user stay."""

import pytest

from switchover.cluster.door.name_cache import OPTIONS, VARIABLE, short

HEAP = {"name": "KAFKA_HEAP_OPTS", "value": "-Xmx1g"}
SOMEWHERE_ELSE = {"name": VARIABLE, "valueFrom": {"configMapKeyRef": {"name": "jvm", "key": "options"}}}


@pytest.mark.parametrize(("before", "after"), [
    ([], [{"name": VARIABLE, "value": OPTIONS}]),
    ([HEAP], [HEAP, {"name": VARIABLE, "value": OPTIONS}]),
    ([{"name": VARIABLE, "value": "-Down=1"}, HEAP], [{"name": VARIABLE, "value": f"-Down=1 {OPTIONS}"}, HEAP]),
    ([{"name": VARIABLE}], [{"name": VARIABLE, "value": OPTIONS}]),
    ([SOMEWHERE_ELSE], [SOMEWHERE_ELSE]),
], ids=["none", "others", "the user's own", "empty", "from elsewhere"])
def test_names_are_forgotten_after_a_second(before, after):
    assert short(before) == after


def test_an_environment_that_is_short_already_stays():
    once = short([HEAP])
    assert short(once) == once
