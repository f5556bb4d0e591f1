"""The migration itself: approvals, pauses, windows, records: what each reason means, and what to do."""

from switchover.reasons.reason import Reason, Subject, Urgency

SUBJECT = Subject(
    "walk", "The migration itself: approvals, pauses, windows, records",
    "switchover status NAME")

APPROVAL_VOID = Reason(
    SUBJECT, "ApprovalVoid", Urgency.STANDS,
    meaning="There is an approval for this step, but it was given for another plan: an earlier attempt, another "
            "object of the same name, or a spec that has changed since (gates, windows, rollout and backups "
            "count); or by somebody who may not give it: a service account, where the step cannot be taken back, or, "
            "with four eyes, somebody who has changed the spec. It does not count. The first upgrade "
            "to a release that computes the hash in another way does the same; CHANGELOG says so.",
    look="The message names the plan that was approved and the plan that stands, or who gave the approval and why "
         "that does not do. `status.attempt` and `status.history` tell what happened in between, `status.requesters` "
         "who has changed the spec.",
    do="Look at the plan again and approve it: `switchover approve kmig/NAME STEP` (`cgmig` for a group) takes "
       "the old approval's place ([AwaitingApproval]). Somebody else does where the message names a person, and a person "
       "where it names a service account; whoever installed the chart may name that account in "
       "`admissionPolicies.approvers.serviceAccounts`.")

AWAITING_APPROVAL = Reason(
    SUBJECT, "AwaitingApproval", Urgency.STANDS,
    meaning="The migration stands before a step that a person must let it pass. Finalize is the point of no "
            "return; HandOver gives the update strategies back and needs an approval only where nothing shows "
            "that Git has the new template ([NotInGit]). A ConsumerGroupMigration waits only before the steps "
            "that its spec names in `holds`; its point of no return is HandOver.",
    prose=True)

BACKUPS_MISSING = Reason(
    SUBJECT, "BackupsMissing", Urgency.STANDS,
    meaning="Finalize is the point of no return. It does not begin before somebody has said that ZooKeeper's data "
            "and the controllers' metadata log are backed up, after every broker had moved to KRaft.",
    prose=True)

BAKING = Reason(
    SUBJECT, "Baking", Urgency.NONE,
    meaning="The last batch passed its gates and is watched for `bakeSeconds`.",
    look="`status.progress.bakeStartTime`.",
    do="Nothing. `spec.rollout` sets the time.")

BEING_DELETED = Reason(
    SUBJECT, "BeingDeleted", Urgency.NONE,
    meaning="The resource is being deleted. Kafka has not claimed the cluster, or the rollback was begun already: "
            "all that the migration changed is taken back before the resource goes.",
    look="`waitingFor`: the rollback has gates of its own, and each says what it waits for. "
         "`status.progress.direction` is Backward.",
    do="Nothing. To let go at once and keep everything as it is: `switchover abandon kmig/NAME`. What stays "
       "behind is listed in Events (`kubectl get events --field-selector reason=LeftBehind`) and in the "
       "operator's log.\n\n"
       "For a ConsumerGroupMigration this holds until HandOver begins: all pods go back to the original, update "
       "settings and autoscalers are given back. The rollback is judged by its gates as well, so a group that is "
       "ill can hold the resource; the same annotation on `cgmig NAME` lets go. A Deployment in the middle then "
       "stays held: its pods consume, and it rolls nothing out. [By hand](../user-guide.md#by-hand) it goes on or "
       "back.")

DEFECT = Reason(
    SUBJECT, "Defect", Urgency.LOOK,
    meaning="A pass ended in an error that nobody expected: a defect of this operator. Nothing moves until a pass goes "
            "through. It is tried again, every minute at last.",
    look="The message: the error, and where in the operator it was met. The operator's log has the traceback.",
    do="Report the defect with that traceback. A version of the operator without it goes on from the record.")

EFFECT_FAILED = Reason(
    SUBJECT, "EffectFailed", Urgency.LOOK,
    meaning="What comes next was asked for, and the API server (or ZooKeeper) did not answer, or with an error of its own: "
            "429, 5xx, a timeout, a connection that was cut. An admission webhook that cannot be reached is such a 5xx. "
            "Whether it took effect is seen in the next pass, and what did is not done twice.",
    look="The message: what was asked for, and the answer. `kubectl get --raw /readyz?verbose`; "
         "`kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations`.",
    do="Repair what does not answer. It is tried again in every pass, and goes on by itself.")

EFFECT_REFUSED = Reason(
    SUBJECT, "EffectRefused", Urgency.STANDS,
    meaning="The API server refused what comes next: mostly a PodDisruptionBudget that allows no eviction now, "
            "else a quota or a missing right. The message carries its words.",
    look="`kubectl get poddisruptionbudgets`: ALLOWED DISRUPTIONS of the budget that covers the pod; the other "
         "pods it covers.",
    do="Let the other pods become Ready, or grant the right that is missing. It is tried again in every pass.")

HELD_UNTIL_THE_END = Reason(
    SUBJECT, "HeldUntilTheEnd", Urgency.STANDS,
    meaning="The resource is being deleted, but the KRaft controllers have claimed the cluster. Without the "
            "operator nobody would watch the dual write or lead the rollback, so the resource stays and the "
            "migration goes on as its spec says until it has ended. Then the resource goes by itself.",
    look="`waitingFor`: what the migration waits for besides, an approval for instance. Holds and pauses hold as "
         "before.",
    do="One of\n\n"
       "* let it go on to the end (approve, resume);\n"
       "* set `desiredState: RolledBack` while `RollbackAvailable` is True: the resource goes when everything is "
       "taken back;\n"
       "* let go of it as it is: `kubectl annotate kmig NAME switchover.dev/abandon=true`. Nothing is changed any "
       "more, by anybody: brokers keep the mode that they have, pods are replaced only when somebody deletes "
       "them (OnDelete), and a later migration of this cluster must be done or undone by hand. What stays behind "
       "is listed in Events (reason LeftBehind) and in the operator's log.\n\n"
       "A ConsumerGroupMigration is held in HandOver alone, for the moments in which update settings are given "
       "back and the claims taken off. Where HandOver is in `spec.holds` it still waits for its approval.")

INVALID_SPEC = Reason(
    SUBJECT, "InvalidSpec", Urgency.STANDS,
    meaning="The operator refuses a field of the spec. No pass reads a spec in part, so nothing moves meanwhile, and the "
            "record stays as it is.",
    look="The message names each field, and why it is refused.",
    do="Mend the spec: `kubectl edit kmig NAME` (`cgmig` for a group). A value that only a newer version of the operator "
       "knows needs that version.")

LEASE_NOT_HELD = Reason(
    SUBJECT, "LeaseNotHeld", Urgency.STANDS,
    meaning="Another operator or migration holds the Lease of this Kafka cluster or consumer group, or nobody can tell "
            "whether: then the message says what the API server answered. Nothing is done without the Lease.",
    look="`kubectl get lease --output yaml`: holderIdentity and renewTime.",
    do="Stop the other operator, or wait: it expires when it is not renewed.")

MUST_HOLD = Reason(
    SUBJECT, "MustHold", Urgency.NONE,
    meaning="The gate passes, but not for long enough yet: it must pass several times in a row, or for some "
            "seconds. The column WAITING-FOR names the gate and how far it is: `AllInSync 4/9 s`.",
    look="`waitingFor`: `gate` says which, `observed` and `threshold` how long it has passed and how long it "
         "must. Where `observed` falls back to 0 again and again the gate closes now and then: `status.gates` "
         "says when each verdict last changed.",
    do="Nothing. `spec.gates.stableSamples` sets how often most gates must pass.")

NO_SUCH_STEP = Reason(
    SUBJECT, "NoSuchStep", Urgency.STANDS,
    meaning="`spec.holds`, or an approval with the hash of this plan, names a step that the plan does not have. "
            "Whoever wrote it meant another one, which would begin without being held, so no step begins before "
            "it is put right. What has begun goes on to its end, and a rollback waits for no hold.",
    look="The message names what is not understood, `unblocks` the steps of this plan. Which steps a "
         "ConsumerGroupMigration has depends on its spec: BridgeCanary and Bridge are there only with a bridge "
         "([all of them](../user-guide.md#the-steps)).",
    do="Correct the name, or take it out; both lists may be changed at any time:\n\n"
       "```\n"
       "kubectl patch cgmig NAME --type merge --patch '{\"spec\":{\"holds\":[\"HandOver\"]}}'\n"
       "```\n\n"
       "It goes on by itself.")

NO_WINDOW_FITS = Reason(
    SUBJECT, "NoWindowFits", Urgency.STANDS,
    meaning="What comes next takes longer than any window of `spec.windows` stays open: it would wait for ever. "
            "Preflight of a KafkaMigration finds it before anything is touched, with an assumed time for a "
            "restart; later it is measured, and one slow restart counts (`status.restarts`). For a batch of "
            "consumers 60 s and its bake are reckoned with.",
    do="Make a window longer, or the bakes of `spec.rollout` shorter. Windows that overlap or touch count as one. "
       "The migration waits and is not taken back for it, even with `onFailure: RollBack`: a rollback would "
       "restart brokers outside of the windows.")

NOT_OBSERVED = Reason(
    SUBJECT, "NotObserved", Urgency.LOOK,
    meaning="Something that the gate needs could not be read. Unknown never opens a gate.",
    look="The message names what and why.",
    do="Repair the way to it; the operator asks again.")

ORDER_UNKNOWN = Reason(
    SUBJECT, "OrderUnknown", Urgency.LOOK,
    meaning="The order of the next batch cannot be told.",
    look="The message: a leader or a controller is missing at this moment.",
    do="Usually nothing.")

OUTSIDE_WINDOW = Reason(
    SUBJECT, "OutsideWindow", Urgency.LOOK,
    meaning="Every window of `spec.windows` is closed, so no batch and no step that disrupts starts. What was "
            "under way has ended or ends, gates are evaluated, and the time counts as waiting for a person. The "
            "message names the next window that is long enough, and when it opens on its own clocks.",
    do="Nothing; or change `spec.windows`, which may be done at any time. `[]` lets it go on at once. Going back "
       "waits for no window.")

PAUSED = Reason(
    SUBJECT, "Paused", Urgency.STANDS,
    meaning="`spec.desiredState` is Paused. Gates are still evaluated.",
    do="`switchover resume kmig/NAME` to go on (`cgmig` for a group).")

POINT_OF_NO_RETURN = Reason(
    SUBJECT, "PointOfNoReturn", Urgency.STANDS,
    meaning="Taking steps back was asked for after Finalize began. Kafka cannot. Of a consumer group: after "
            "HandOver began, when what the rollback needs is being given up.",
    do="`switchover resume kmig/NAME` (`cgmig` for a group) and let it end. A group can still be moved the other "
       "way by a migration of its own: a new ConsumerGroupMigration with the opposite `protocol.to`.")

CLUSTER_ID_CHANGED = Reason(
    SUBJECT, "ClusterIdChanged", Urgency.NOW,
    meaning="ZooKeeper or a broker says another cluster id than the one that Preflight put on record. Controllers are "
            "formatted with that id, and a broker or a controller of another one would join nothing. Nothing is moved or "
            "written, forward or back.",
    look="`status.clusterId`; `/cluster/id` in ZooKeeper, with its modification time (`zookeeper-shell.sh`, `get -s`); "
         "`cluster.id` in the brokers' `meta.properties`, which nobody changes by accident.",
    do="If `/cluster/id` was written, write back what the brokers' `meta.properties` say, and find out who may write it. "
       "If the address leads to another ensemble now, lead it back. If the status was edited, put its `clusterId` back.")

RECORD_CONTRADICTED = Reason(
    SUBJECT, "RecordContradicted", Urgency.NOW,
    meaning="The step in `status.progress` is not where the cluster or the group is: what is seen is not what the "
            "steps before it leave behind. Nothing is done, Succeeded and RollbackAvailable are False.",
    prose=True)

RECORD_OF_ANOTHER = Reason(
    SUBJECT, "RecordOfAnother", Urgency.LOOK,
    meaning="The object was restored from a backup together with its status, which is the record of the object that it "
            "was copied from. Nothing in that status is believed, nothing in it is approved, and the migration begins "
            "anew at Preflight.",
    look="`status.history`: the entry says where the other object stood. What that one claimed or made, Preflight "
         "finds ([ClaimedByAnother]).",
    do="Nothing for the record itself; see to what Preflight finds.")

STATUS_UNREADABLE = Reason(
    SUBJECT, "StatusUnreadable", Urgency.STANDS,
    meaning="A field of the status is none that this operator writes: somebody edited it, or another version wrote it. "
            "The status is the record of the migration, so nothing moves until it can be read.",
    look="The message names each field, and what is wrong with it.",
    do="Run the version of the operator that wrote it, or put the field back: "
       "`kubectl edit kmig NAME --subresource=status` (`cgmig` for a group). Do not clear the status.")

TOO_MUCH_WORK = Reason(
    SUBJECT, "TooMuchWork", Urgency.STANDS,
    meaning="Working out what comes next for this object took more of the processor than one object may take (5 s). It was "
            "ended, so that other migrations go on. Nothing was decided, and nothing moves.",
    look="The message says in which part of the operator it was ended. What differs from migrations that go on: the number "
         "of brokers and partitions, or of windows, groups and batches in the spec.",
    do="Make the spec smaller where it can be. It is tried again every two minutes. Where the spec is small this is a "
       "defect of the operator: tell us the message.")

UNDO_NOT_AVAILABLE = Reason(
    SUBJECT, "UndoNotAvailable", Urgency.STANDS,
    meaning="This step cannot be taken back by this version.",
    look="`status.rollback`.",
    do="Go on (`switchover resume kmig/NAME`), or stand still (`switchover pause kmig/NAME`).")

UNKNOWN_STEP = Reason(
    SUBJECT, "UnknownStep", Urgency.STANDS,
    meaning="The step on record is not in this operator's plan: another version recorded it.",
    look="`status.progress.step`; the operator's image.",
    do="Run the version that recorded it to the end.")

WINDOW_TOO_SHORT = Reason(
    SUBJECT, "WindowTooShort", Urgency.LOOK,
    meaning="A window is open, but what comes next could not end before it closes: its time is the slowest "
            "restart so far into that mode (`status.restarts`; an assumption before there was one) and its bake. "
            "The canary usually needs most. CopyMetadata (the last broker, the claim, the copy) and Finalize (all "
            "controllers) are one piece each. For a batch of consumers it is 60 s and its bake.",
    do="Nothing: it starts in the window that the message names. To use the rest of this one, make the window "
       "longer or the bakes of `spec.rollout` shorter.")

WINDOWS_OPEN_TOO_OFTEN = Reason(
    SUBJECT, "WindowsOpenTooOften", Urgency.STANDS,
    meaning="The windows of `spec.windows` open so often that it cannot be told where what comes next would fit: the next "
            "500 openings of all of them together are looked at, and no more. Windows that open every minute for a minute "
            "are such. Preflight of a KafkaMigration finds it before anything is touched.",
    do="Name one opening with the whole `durationSeconds` where many follow each other: `0 1 * * *` with 14400 s, not "
       "`* 1-4 * * *` with 60 s. The migration waits and is not taken back for it.")

OF_WINDOWS = frozenset(each.name for each in (OUTSIDE_WINDOW, WINDOW_TOO_SHORT, NO_WINDOW_FITS, WINDOWS_OPEN_TOO_OFTEN))
"""Why a batch or step waits for its time."""
