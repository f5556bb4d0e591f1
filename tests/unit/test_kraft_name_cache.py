"""The JVMs' name cache is cut short, and options of the user stay."""

import pytest

from switchover.cluster.door.mount import JVM_OPTIONS, JVM_VARIABLE, short_name_cache

HEAP = {"name": "KAFKA_HEAP_OPTS", "value": "-Xmx1g"}
SOMEWHERE_ELSE = {"name": JVM_VARIABLE, "valueFrom": {"configMapKeyRef": {"name": "jvm", "key": "options"}}}


@pytest.mark.parametrize(("before", "after"), [
    ([], [{"name": JVM_VARIABLE, "value": JVM_OPTIONS}]),
    ([HEAP], [HEAP, {"name": JVM_VARIABLE, "value": JVM_OPTIONS}]),
    ([{"name": JVM_VARIABLE, "value": "-Down=1"}, HEAP], [{"name": JVM_VARIABLE, "value": f"-Down=1 {JVM_OPTIONS}"}, HEAP]),
    ([{"name": JVM_VARIABLE}], [{"name": JVM_VARIABLE, "value": JVM_OPTIONS}]),
    ([SOMEWHERE_ELSE], [SOMEWHERE_ELSE]),
], ids=["none", "others", "the user's own", "empty", "from elsewhere"])
def test_names_are_forgotten_after_a_second(before, after):
    assert short_name_cache(before) == after


def test_an_environment_that_is_short_already_stays():
    once = short_name_cache([HEAP])
    assert short_name_cache(once) == once
