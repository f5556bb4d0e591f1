"""Classes that are not Kafka's own: they go on to run on KRaft, and nobody but the user knows whether they can."""

from collections.abc import Iterator

from switchover.api.meta import AcceptedRisk
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import examined
from switchover.engine.gate import Verdict, check, fail, several, warn
from switchover.metadata.kafka_config import foreign, names_classes
from switchover.reasons.notes import FOREIGN_CLASS
from switchover.reasons.preflight import FOREIGN_AUTHORIZER
from switchover.shared.grouped import grouped

AUTHORIZER = "authorizer.class.name"
ON_BROKERS = ("remote.log.", "replica.selector.class")
"""What begins so runs on brokers alone."""
ON_CONTROLLERS = ("alter.config.policy.class.name", "create.topic.policy.class.name")
"""Policies: brokers on KRaft ask none."""
HIDDEN = "what brokers hide"


def find_foreign_classes(picture: Picture) -> Iterator[Verdict]:
    """Each setting once with each value; Kafka's own classes are in packages of its own."""
    told = dict(examined(picture))
    named = [((key, ", ".join(foreign(classes))), broker_id) for broker_id, each in told.items()
             for key, classes in each.classes.items() if foreign(classes)]
    hidden = [((key, HIDDEN), broker_id) for broker_id, each in told.items() for key in each.hidden if names_classes(key)]
    for (key, classes), broker_ids in sorted(grouped((*named, *hidden)).items()):
        where = _where(key)
        message = (f"{key} of broker {several(broker_ids)} is {classes}, not Kafka's own: it will run on {where}, on KRaft"
                   " and without ZooKeeper's settings")
        cure = "see that it supports KRaft, and try it on a KRaft cluster of Kafka 3.9"
        if key != AUTHORIZER or AcceptedRisk.FOREIGN_AUTHORIZER in picture.spec.accepted_risks:
            yield warn(FOREIGN_CLASS, message, subject=key, observed=classes, threshold="Kafka's own", cure=cure)
        else:
            yield fail(FOREIGN_AUTHORIZER, message, subject=key, observed=classes, threshold="Kafka's own",
                       unblocks=f"{cure}; then accept it by name: spec.acceptedRisks: [{AcceptedRisk.FOREIGN_AUTHORIZER}]")


def _where(setting: str) -> str:
    if setting in ON_CONTROLLERS:
        return "the controllers"
    return "brokers" if setting.startswith(ON_BROKERS) else "brokers and controllers"


CHECKS = (
    check("Classes", find_foreign_classes, "brokers run no classes but Kafka's own, or those were accepted",
          needs=(Need.EXAMINATION,)),
)
