"""Soak, end, and ZooKeeper's release: what each reason means, and what to do."""

from switchover.reasons.reason import Reason, Subject, Urgency

SUBJECT = Subject(
    "ending", "Soak, end, and ZooKeeper's release",
    "switchover status NAME")

CONTROLLER_FLAGGED = Reason(
    SUBJECT, "ControllerFlagged", Urgency.LOOK,
    meaning="A controller is still registered with the migration flag after it was restarted without.",
    look="`/run/switchover/server.properties` in its container `controller`, and its log.",
    do="Wait a moment for its registration. If it stays, see [ModeMismatch].")

NOT_BACK_WITHOUT_ZOOKEEPER = Reason(
    SUBJECT, "NotBackWithoutZooKeeper", Urgency.NOW,
    meaning="One broker, or one controller, was restarted while ZooKeeper is stopped, and does not answer yet. "
            "For a minute that is how it starts. When it stays so the migration is Stalled: something in the pod "
            "needs ZooKeeper still, which nobody could see from outside. All others run, the quorum has its "
            "majority, and every partition keeps its `min.insync.replicas`.",
    look="The message has what the kubelet says of the pod. The pod's log says what it waits for: an entry script "
         "that asks for ZooKeeper (see [entry scripts](../user-guide.md)), an init container, or something that "
         "has nothing to do with it, such as a node without room.",
    do="If it does not come by itself, put ZooKeeper back by the command of the message; the broker starts then. "
       "That restart has proved nothing: once the broker is back, ZooKeeper is asked away anew ([ZooKeeperRuns]). "
       "Before that, take out of the template what asked for it.")

NOT_FINALIZED = Reason(
    SUBJECT, "NotFinalized", Urgency.LOOK,
    meaning="Controllers were restarted without the flag and the log does not say POST_MIGRATION.",
    look="Which controller leads, and with which configuration.",
    do="Wait for an election. It is written when a controller without the flag becomes leader.")

PODS_NEED_ZOOKEEPER = Reason(
    SUBJECT, "PodsNeedZooKeeper", Urgency.STANDS,
    meaning="Something of the brokers' or controllers' pods other than Kafka asks for ZooKeeper: an init "
            "container that waits for it, a probe that looks at `/brokers/ids`, a hook. Kafka itself does not "
            "need it any more; but a pod that is rescheduled after ZooKeeper is gone would never start again, one "
            "node drain after the other.",
    look="The message names the container, probe or hook. Of entry scripts only Confluent's is known, which waits "
         "for the servers of `KAFKA_ZOOKEEPER_CONNECT` unless `KAFKA_ZOOKEEPER_SSL_CLIENT_ENABLE` is true; what "
         "another image's does cannot be seen from here ([entry scripts](../user-guide.md)): it shows when a "
         "broker is restarted while ZooKeeper is stopped ([ZooKeeperRuns]).",
    do="Take it out of the manifest or the chart's values, apply that, and let every broker restart once while "
       "ZooKeeper still runs. The controllers' pods were made as a copy of the brokers', without those of their "
       "init containers and sidecars that `spec.controllers.template.omit` names: edit their StatefulSet, which "
       "is OnDelete, and delete its pods one at a time, the quorum's leader last.")

RETAINING = Reason(
    SUBJECT, "Retaining", Urgency.NONE,
    meaning="ZooKeeper is kept for `zookeeperRetentionSeconds`.",
    do="Nothing.")

SOAKING = Reason(
    SUBJECT, "Soaking", Urgency.NONE,
    meaning="All brokers run on KRaft and dual write goes on, or all members of the group have moved and are "
            "watched, for `soakSeconds`.",
    do="Nothing. It is the time in which you can still go back.")

STILL_DUAL_WRITING = Reason(
    SUBJECT, "StillDualWriting", Urgency.NONE,
    meaning="`/migration` was written a moment ago although the migration is finalized.",
    look="Is another controller still running with the flag?",
    do="Wait a moment; else find that controller.")

ZOOKEEPER_IN_USE = Reason(
    SUBJECT, "ZooKeeperInUse", Urgency.STANDS,
    meaning="Clients are still connected to ZooKeeper.",
    look="`echo cons | nc HOST 2181`, where the four-letter word is allowed.",
    do="Stop them, or move them to Kafka. Kafka's own tools count while they run. Where others use the ensemble "
       "and go on doing so, set `spec.zookeeper.shared: true`: the migration ends, and ZooKeeperRemovable stays "
       "False.")

ZOOKEEPER_RUNS = Reason(
    SUBJECT, "ZooKeeperRuns", Urgency.STANDS,
    meaning="Nothing is connected to ZooKeeper any more, the retention is over, and no pod's template asks for "
            "it. What an image's entry script does at a start is not seen from there, so the migration waits for "
            "the proof: a broker and a controller that start while ZooKeeper is stopped. Only after it "
            "ZooKeeperRemovable is True.",
    look="Whether anybody else uses this ensemble. The message names the servers that still accept connections.",
    do="Scale ZooKeeper to 0 by the command of the message, and keep its volumes: it can be put back. Where the "
       "StatefulSet's name could not be told from `zookeeper.connect`, put it in for NAME. Where a GitOps tool "
       "applies ZooKeeper, change its replicas there. Once every server refuses connections, or its name is gone, "
       "Switchover restarts the broker that leads least and then a controller that does not lead, whose pod "
       "starts by the same entry script, within your windows and through the eviction API. A server that merely "
       "does not answer is not taken for stopped ([ZooKeeperUnverified]).\n\n"
       "Where others use the ensemble and it cannot be stopped, set `spec.zookeeper.shared: true`: the migration "
       "ends without the proof, and ZooKeeperRemovable stays False (NotProven). Nothing presses: until then the "
       "cluster runs on KRaft, and the migration may be deleted.")

ZOOKEEPER_UNVERIFIED = Reason(
    SUBJECT, "ZooKeeperUnverified", Urgency.LOOK,
    meaning="It is not known whether a ZooKeeper server has clients, or whether it is stopped: it does not answer the "
            "four-letter word `srvr`, or something else does.",
    look="The message has its own words. ZooKeeper's `4lw.commands.whitelist` never forbids `srvr` (run on 3.8.4), so "
         "something stands before it: a proxy, a port of another service. For servers that you have stopped: a refused "
         "connection and a name that is gone tell so, a lost packet does not. Some networks drop what is sent to a "
         "Service without endpoints.",
    do="Let the operator's pod ask the server itself. Or see to its clients by your own means, and stop ZooKeeper by the "
       "command of the message: a server that refuses connections has none. For a stopped server behind such a "
       "Service, delete the Service as well, so that its name is gone; or set `spec.zookeeper.shared: true`, which ends "
       "the migration without the proof, and remove ZooKeeper at your own judgement.")
