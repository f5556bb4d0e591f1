"""Workloads, their pods and who else writes them: what each reason means, and what to do."""

from switchover.reasons.reason import Reason, Subject, Urgency

SUBJECT = Subject(
    "workloads", "Workloads, their pods and who else writes them",
    "kubectl describe pod POD")

AUTOSCALER_ACTIVE = Reason(
    SUBJECT, "AutoscalerActive", Urgency.STANDS,
    meaning="An autoscaler may change the number of pods while they are being moved. Baseline pauses it and waits "
            "until it is; if this comes later, something has taken the pause off, and Switchover pauses it again "
            "at once. No pod is moved meanwhile.",
    prose=True)

AUTOSCALER_IN_THE_WAY = Reason(
    SUBJECT, "AutoscalerInTheWay", Urgency.STANDS,
    meaning="An autoscaler that Switchover cannot pause: a VerticalPodAutoscaler (it may restart pods), an HPA "
            "that another object keeps and would put back, or a ScaledObject that holds the replicas at a fixed "
            "number.",
    look="The message says which and why. `kubectl get "
         "verticalpodautoscaler,horizontalpodautoscaler,scaledobject`.",
    do="Keep a copy of a VerticalPodAutoscaler and delete it until the migration has ended. For an HPA with an "
       "owner, pause the owner. For a ScaledObject: `kubectl annotate scaledobject NAME "
       "autoscaling.keda.sh/paused-replicas-`.")

CONTAINER_MISSING = Reason(
    SUBJECT, "ContainerMissing", Urgency.STANDS,
    meaning="Which container of the brokers' pods runs Kafka cannot be told: `spec.brokers[].container` names "
            "none, or it is not set and several containers could be meant (one called `kafka`, else the only one, "
            "else the only one with `kafka` and without `exporter` in its name).",
    look="The message lists the containers that there are; sidecars are among them.",
    do="Set `spec.brokers[].container` to the one that runs Kafka.")

DEPLOYMENT_NOT_HELD = Reason(
    SUBJECT, "DeploymentNotHeld", Urgency.NOW,
    meaning="Somebody set `minReadySeconds` of a Deployment whose pods are being moved. With it the Deployment is "
            "held: no new pod counts as available, so Kubernetes replaces no more than the batch. Without it a "
            "Deployment that is not paused is rolled to its end within seconds, judged by Ready alone. Switchover "
            "holds it again in the same pass, and moves no pod until it is held.",
    prose=True)

IMAGE_NOT_ALLOWED = Reason(
    SUBJECT, "ImageNotAllowed", Urgency.STANDS,
    meaning="The migration names an image of another repository than the container has that it replaces, and the "
            "chart's value `allow.images` does not have it; or that value names tags or digests of the repository, and "
            "not this one. Whoever may create a migration could otherwise run any image with the ServiceAccount, the "
            "Secrets and the volumes of that workload.",
    look="The image, and who made it.",
    do="Whoever installed the chart allows the repository: `helm upgrade … --set "
       "'allow.images={registry.example/team/*}'`, or one image alone, by its tag or digest. Another tag of the same "
       "repository needs no leave while `allow.images` names no tag or digest of it.")

POD_CHANGE_NOT_ALLOWED = Reason(
    SUBJECT, "PodChangeNotAllowed", Urgency.STANDS,
    meaning="A patch of a template, or `spec.controllers.template`, gives pods an annotation, a label or a setting that "
            "they did not have, changes one or takes it away, and the chart's value `allow.annotations`, `allow.labels` or "
            "`allow.pods` does not have it. Meshes, Vault, networks and cloud identities read annotations and labels, and "
            "give pods volumes, Secrets and rights for them. `allow.pods` may have `hostPort` (a port of the node), "
            "`hostAliases` and `dnsConfig` (names that stand for other addresses), `probeHost` (the kubelet asks another "
            "host) and `tolerateAll` (nodes that are set aside).",
    look="The message: it names the field, the value of the chart and the keys.",
    do="Leave them out. Or whoever installed the chart allows them, and does so for every migration that this operator "
       "serves: the finding has the command. Annotations below `checksum/` and `prometheus.io/` need no leave, nor does "
       "what the pods have already.")

NODE_CORDONED = Reason(
    SUBJECT, "NodeCordoned", Urgency.STANDS,
    meaning="A node that carries a broker is cordoned: somebody is about to drain it.",
    look="`kubectl get nodes`.",
    do="Wait for the maintenance to end, or `kubectl uncordon` it. No batch starts meanwhile.")

NOT_IN_GIT = Reason(
    SUBJECT, "NotInGit", Urgency.STANDS,
    meaning="Finalize is done and the cluster runs on KRaft. What remains is to give the brokers' StatefulSet "
            "back, and nobody but Switchover has applied the template that it runs: the next apply of the old "
            "manifest would take the brokers' edits away, and the next pod would start in ZooKeeper mode.",
    prose=True)

NOT_RELEASED = Reason(
    SUBJECT, "NotReleased", Urgency.LOOK,
    meaning="The migration or its rollback is about to end and something of it is left on a workload: pods would "
            "restart if its own update settings were given back, or the claim is there.",
    look="```\n"
         "kubectl describe deployment WORKLOAD | grep ReplicaSet          # OldReplicaSets must be at 0\n"
         "kubectl get statefulset WORKLOAD --output jsonpath='{.spec.updateStrategy} {.status.currentRevision} "
         "{.status.updateRevision}'\n"
         "```",
    do="Wait for pods that end. Where the Deployment's template was changed since the last batch (a sidecar, a "
       "label), no pod has it: put that back, and change it after the end. A pod that does not end within its "
       "grace period sits on a lost node: delete it with `--force` if the node is really gone. [EffectRefused] "
       "beside this names a right that is missing.")

OLD_IMAGE = Reason(
    SUBJECT, "OldImage", Urgency.STANDS,
    meaning="Finalize is done, and somebody has applied a template of the brokers' StatefulSet with the image "
            "that they had before Switchover upgraded them. No pod was replaced by it: an older Kafka might not "
            "read what 3.9 has written.",
    look="`kubectl get statefulset NAME --output jsonpath='{.spec.template.spec.containers[*].image}'`, and what "
         "applies the manifest.",
    do="Apply it with an image of Kafka 3.9, the one of `spec.upgrade.image` or a newer one of that release, and "
       "put it into Git. Switchover then goes on by itself.")

ORIGINAL_MISSING = Reason(
    SUBJECT, "OriginalMissing", Urgency.NOW,
    meaning="Before it changed a StatefulSet of brokers, the operator kept its template, its update strategy, and "
            "what its brokers were, in a ControllerRevision, `NAME-before-switchover-ATTEMPT`. Somebody deleted "
            "it: a clean-up of ControllerRevisions, or a GitOps tool that prunes. Without it neither a rollback "
            "nor HandOver could give back what was there, and no edits could be written, so nothing more is "
            "moved.",
    prose=True)

OWN_CONFIGURATION_DIFFERS = Reason(
    SUBJECT, "OwnConfigurationDiffers", Urgency.STANDS,
    meaning="HandOver has tried the new template of the brokers' StatefulSet in a pod of its own, in which Kafka is "
            "not started. What would reach Kafka is not what the brokers must run with: each key is named, with what "
            "it is and what it must be. A broker with it would not start, would not be found by its clients, or would "
            "begin with an empty disk. No broker was restarted, and all run on by their edits.",
    look="`kubectl logs job/JOB`. `switchover export NAME` prints what the settings must say, after \"Or nothing of "
         "Switchover's\"; [charts](../charts/README.md) has it in the words of public charts.",
    do="Correct the values or the manifest and apply it: HandOver tries it and goes on by itself. Where the "
       "configuration is a file of its own and the template does not change with it, delete the Job by the command "
       "in `unblocks`, and it is tried again; also where a listener advertises the address of its node and the pod ran on "
       "another one. A difference that is meant (another name for clients, say) is accepted "
       "by `UntriedTemplate` in `spec.acceptedRisks`: the canary is the first to try it then.")

OWN_TEMPLATE = Reason(
    SUBJECT, "OwnTemplate", Urgency.STANDS,
    meaning="Finalize is done, and somebody has applied a template of the brokers' StatefulSet that is not the "
            "one of before. No pod was replaced.",
    prose=True)

POD_COMING_UP = Reason(
    SUBJECT, "PodComingUp", Urgency.LOOK,
    meaning="A replaced pod is on its way. The message says how far it has come and since when; what takes longer "
            "than usual, or has a trouble that Kubernetes names, becomes [PodInTrouble], which has the stages "
            "and how long each may take.",
    look="`kubectl describe pod`, `kubectl get events`. Of a group's consumers the kubelet's trouble stands in "
         "the message.",
    do="Wait, or repair what keeps it from starting (image, volume, node, quota). A Deployment of consumers needs "
       "room for one batch more than it has pods; where a quota leaves none, the message names it. Make room, or "
       "set `spec.rollout.surge: 0`, at any time: the earlier pods of the batch then leave first.")

POD_IN_TROUBLE = Reason(
    SUBJECT, "PodInTrouble", Urgency.LOOK,
    meaning="A replaced pod does not come up: the kubelet names a trouble, or the pod has been at one stage for "
            "longer than is usual. The message has the stage, since when, and the last words of a container that "
            "ended. Nothing is evicted for being slow, and nothing is undone; after `gates.stepPatienceSeconds` "
            "(900) the step is Stalled.",
    prose=True)

PROTOCOL_REFUSED = Reason(
    SUBJECT, "ProtocolRefused", Urgency.STANDS,
    meaning="The coordinator was asked by a heartbeat that creates nothing, and answered that it does not serve "
            "the consumer protocol.",
    look="`observed` is the error.",
    do="UNSUPPORTED_VERSION: the feature is not finalized, or `group.coordinator.rebalance.protocols` leaves "
       "`consumer` out. `kafka-features.sh --bootstrap-server kafka:9092 upgrade --feature group.version=1`.")

REPLICAS_CHANGED = Reason(
    SUBJECT, "ReplicasChanged", Urgency.STANDS,
    meaning="The StatefulSet of the brokers was scaled while they are being moved. A broker that came since has "
            "no edits, does not start, and is none of the migration; one that went took its replicas with it.",
    prose=True)

REVERTED_BY_GITOPS = Reason(
    SUBJECT, "RevertedByGitOps", Urgency.NOW,
    meaning="Somebody put mounts, volumes or the update strategy of a broker StatefulSet back. `message` names "
            "them, as far as the StatefulSet's managedFields and marks tell. A pod that starts now would start "
            "without the edits of its mode, on your own configuration: from KRaft back into ZooKeeper mode, so "
            "none is evicted. Where the update strategy was put back, Kubernetes may restart the brokers by "
            "itself: hurry.",
    prose=True)

STATEFUL_SET_MISSING = Reason(
    SUBJECT, "StatefulSetMissing", Urgency.STANDS,
    meaning="A StatefulSet of `spec.brokers` does not exist.",
    look="`kubectl get statefulsets`.",
    do="Correct the name. In the middle of a migration: create it again as it was; its pods and volumes are "
       "untouched.")

TEMPLATE_NOT_BROUGHT = Reason(
    SUBJECT, "TemplateNotBrought", Urgency.STANDS,
    meaning="With `spec.handOver: OwnConfiguration` the brokers are to run by KRaft settings of your own, and the "
            "template of their StatefulSet is still the one of before the migration, which says ZooKeeper. "
            "Nothing is changed and no pod is replaced.",
    look="`switchover export NAME`: what the settings must say, after \"Or nothing of Switchover's\". "
         "[charts](../charts/README.md) has it in the words of public charts.",
    do="Apply the chart or the manifest with it, then approve HandOver ([user guide](../user-guide.md)). Where "
       "the configuration is a file of its own, the template does not change with it: change an annotation of the "
       "template as well. To keep script and edits instead: `spec.handOver: Export`.\n\n"
       "The controllers' pods are a copy of what the brokers' were, and go on using their ConfigMaps, Secrets and "
       "ServiceAccount. The command in `unblocks` names those, and has Helm keep them when an upgrade does not "
       "render them any more. With another tool, prune none of them.")

STRATEGY_RESET = Reason(
    SUBJECT, "StrategyReset", Urgency.NOW,
    meaning="Somebody set the `strategy` of a Deployment whose pods are being moved, and left it held. Held, a "
            "Deployment starts as many pods as its `maxSurge` says and lets as many go as its `maxUnavailable` says: "
            "the sum of the two is how many were moved beside the batch, at most. While it is paused no pod leaves "
            "for it; of another `maxSurge` a share of pods of each template starts. Switchover sets the strategy "
            "again in the same pass, and moves no pod until it is set.",
    look="The message names who wrote it last, and `observed` what it was. `kubectl get deployment NAME --output "
         "yaml --show-managed-fields`; `kubectl describe deployment NAME | grep ReplicaSet`.",
    do="Stop what sets it again and again: run what `unblocks` gives, or leave `strategy`, `minReadySeconds`, "
       "`progressDeadlineSeconds` and `paused` out of the manifest ([which "
       "fields](../gitops.md#a-deployment-of-consumers-meanwhile)). HandOver and the rollback give them their own "
       "values again. Pods that are too many go with the next batch. Those that Kubernetes has moved on its own are "
       "of this migration's template, and are judged with the next batch; if the group is ill, `switchover rollback "
       "cgmig/NAME`.")

TEMPLATE_NOT_HELD = Reason(
    SUBJECT, "TemplateNotHeld", Urgency.NOW,
    meaning="Brokers are to be rolled to a template of the user's own, one by one, and the StatefulSet has an "
            "update strategy that replaces pods by itself.",
    look="`kubectl get statefulset NAME --output jsonpath='{.spec.updateStrategy}' --show-managed-fields`.",
    do="Switchover sets OnDelete again within seconds. If it does not stay so, suspend the tool that changes it, "
       "or have its manifest say `updateStrategy: {type: OnDelete}` until HandOver is done.")

TOO_MANY_PODS = Reason(
    SUBJECT, "TooManyPods", Urgency.STANDS,
    meaning="The workloads that the spec names want more pods than one migration takes on: its status has a record of each, "
            "and holds 1000, of a KafkaMigration 995 brokers and the controllers.",
    look="`kubectl get statefulset,deployment`: `observed` counts the pods that they want, whether these run or not.",
    do="Scale the workload to what it is meant to have. A consumer group of more pods cannot be migrated by this version.")

TRIAL_FAILED = Reason(
    SUBJECT, "TrialFailed", Urgency.STANDS,
    meaning="HandOver has tried the new template of the brokers' StatefulSet in a pod of its own, and it did not come "
            "to the start of Kafka: an init container or the entry script ended before, the pod could not start, or "
            "it took longer than half an hour. The message ends with what the container said last. No broker was "
            "restarted, and all run on by their edits.",
    look="`kubectl logs job/JOB --all-containers`. A FileAlreadyExistsException of `__cluster_metadata-0` means that "
         "the container starts Kafka by another script than the one that its template tells, or that "
         "`spec.brokers[].start` names.",
    do="Correct the values or the manifest and apply it: HandOver tries it and goes on by itself. The pod has empty "
       "directories in place of a broker's volumes, and in its log directories nothing but `meta.properties`. Where a "
       "script needs more than that, or no such pod can run (an image without bash, say), "
       "`UntriedTemplate` in `spec.acceptedRisks` goes on without: the canary is the first to try it then.")

TRIAL_RUNNING = Reason(
    SUBJECT, "TrialRunning", Urgency.NONE,
    meaning="The new template of the brokers' StatefulSet is tried before a broker has it: a Job runs its init containers "
            "and entry script as the first broker's, and reports what Kafka would be started with.",
    look="`kubectl get pods --selector batch.kubernetes.io/job-name=JOB`, `kubectl logs job/JOB --all-containers`.",
    do="Nothing. It takes as long as a pod takes to start, the pull of its image included. Where no node has room for it "
       "(`Unschedulable`), make some, or go on without by the command in `unblocks`.")

WORKLOAD_MISSING = Reason(
    SUBJECT, "WorkloadMissing", Urgency.STANDS,
    meaning="A Deployment or StatefulSet of `spec.workloads` does not exist.",
    look="`kubectl get deployment,statefulset`.",
    do="In Preflight correct the name. In the middle of a migration somebody deleted it, and its pods with it. "
       "Create it again as it was, with the number of pods that it had last, and claim it:\n\n"
       "```\n"
       "kubectl get controllerrevision deployment-WORKLOAD-before-UID8-ATTEMPT --output yaml        # the "
       "template as it was; UID8: the first 8 characters of the migration's uid\n"
       "kubectl annotate deployment WORKLOAD switchover.dev/claimed-by=$(kubectl get cgmig NAME --output "
       "jsonpath='{.metadata.uid}')\n"
       "```")

WOULD_RESTART = Reason(
    SUBJECT, "WouldRestart", Urgency.NOW,
    meaning="A pod does not have the update revision: with its own update strategy back, Kubernetes would restart "
            "it, ungated. Somebody has changed the template since; the message names who wrote it last, as far "
            "as the API server knows.",
    look="`kubectl get pods --show-labels`: controller-revision-hash. `kubectl get statefulset NAME --output yaml "
         "--show-managed-fields` has who wrote what. Tools that write into templates by themselves: Stakater's "
         "Reloader and Wave (whenever a Secret or ConfigMap changes; [what Preflight says of "
         "them](../preflight.md)), `kubectl rollout restart`, injectors of sidecars.",
    do="Stop whoever writes it. Then run what `unblocks` gives: the template of the revision that the pods run is "
       "put back. Or, if the change is wanted, put what `switchover export` prints into it and apply it after "
       "HandOver.")
