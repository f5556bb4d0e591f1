"""Replays metadata records into a `LogImage`.

Follows Kafka's `MetadataBatchLoader` and `ClusterDelta`: what stands between BeginTransaction and EndTransaction
becomes visible at once at the end, an AbortTransaction drops it, and a record that contradicts the state is an error.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from switchover.metadata.decode import MetadataLogError, Record
from switchover.metadata.image import BrokerRegistration, LogImage, MigrationState

METADATA_VERSION = "metadata.version"
_FENCING = {-1: False, 0: None, 1: True}                    # BrokerRegistrationChange; None leaves it as it was


class InconsistentLogError(MetadataLogError):
    """A record that makes no sense after the ones before it."""


class Replay:
    """The state after the records given so far, from offset 0 on. Useless once an error was raised: start again."""

    def __init__(self) -> None:
        self.skipped: Counter[str] = Counter()              # record types that nobody reads, by name
        self._offset = -1
        self._epoch = 0
        self._state: MigrationState | None = None
        self._features: dict[str, int] = {}
        self._controllers: dict[int, bool] = {}
        self._brokers: dict[int, BrokerRegistration] = {}
        self._transaction: str | None = None
        self._pending: list[tuple[int, Record]] = []        # records of the open transaction
        self._aborted = 0

    def apply(self, record: Record, offset: int) -> None:
        """Take in the record at `offset`. Raises InconsistentLogError."""
        match record:
            case Record("BeginTransaction", fields={"name": name}):
                if self._transaction is not None:
                    raise InconsistentLogError(offset, f"a transaction begins inside {self._transaction!r}")
                self._transaction = name or "unnamed"
            case Record("EndTransaction"):
                self._close_transaction(offset)
                for position, pending in self._pending:
                    self._replay(pending, position)
                self._pending = []
            case Record("AbortTransaction"):
                self._close_transaction(offset)
                self._pending = []
                self._aborted += 1
            case Record(fields=None):
                self.skipped[record.type] += 1
            case _ if self._transaction is not None:
                self._pending.append((offset, record))
            case _:
                self._replay(record, offset)

    def advance(self, offset: int, epoch: int) -> None:
        """Everything up to `offset`, of leader epoch `epoch`, is read: also control records, which carry no state."""
        self._offset, self._epoch = offset, epoch

    def image(self) -> LogImage:
        return LogImage(
            offset=self._offset,
            epoch=self._epoch,
            migration_state=self._state,
            metadata_version=self._features.get(METADATA_VERSION),
            controllers=dict(self._controllers),
            brokers=dict(self._brokers),
            open_transaction=self._transaction,
            aborted_transactions=self._aborted,
        )

    def _close_transaction(self, offset: int) -> None:
        if self._transaction is None:
            raise InconsistentLogError(offset, "a transaction ends that never began")
        self._transaction = None

    def _replay(self, record: Record, offset: int) -> None:
        apply = _APPLY.get(record.type)
        if apply is not None and record.fields is not None:
            apply(self, record.fields, offset)

    def _register_broker(self, fields: Mapping[str, Any], offset: int) -> None:
        self._brokers[fields["broker_id"]] = BrokerRegistration(
            epoch=fields["broker_epoch"], migrating_zk=fields["is_migrating_zk_broker"], fenced=fields["fenced"],
        )

    def _unregister_broker(self, fields: Mapping[str, Any], offset: int) -> None:
        self._brokers.pop(fields["broker_id"], None)

    def _change_registration(self, fields: Mapping[str, Any], offset: int) -> None:
        if fields["fenced"] not in _FENCING:
            raise InconsistentLogError(offset, f"broker {fields['broker_id']}: unknown fencing {fields['fenced']}")
        fenced = _FENCING[fields["fenced"]]
        self._set_fenced(fields["broker_id"], fields["broker_epoch"], fenced, offset)

    def _fence(self, fields: Mapping[str, Any], offset: int) -> None:
        self._set_fenced(fields["id"], fields["epoch"], True, offset)

    def _unfence(self, fields: Mapping[str, Any], offset: int) -> None:
        self._set_fenced(fields["id"], fields["epoch"], False, offset)

    def _set_fenced(self, broker: int, epoch: int, fenced: bool | None, offset: int) -> None:
        registration = self._brokers.get(broker)
        if registration is None or registration.epoch != epoch:
            known = "not registered" if registration is None else f"registered with epoch {registration.epoch}"
            raise InconsistentLogError(offset, f"broker {broker} changes with epoch {epoch}, but it is {known}")
        if fenced is not None:
            self._brokers[broker] = replace(registration, fenced=fenced)

    def _feature_level(self, fields: Mapping[str, Any], offset: int) -> None:
        self._features[fields["name"]] = fields["feature_level"]

    def _migration_state(self, fields: Mapping[str, Any], offset: int) -> None:
        try:
            self._state = MigrationState(fields["zk_migration_state"])
        except ValueError as error:
            raise InconsistentLogError(offset, f"unknown ZkMigrationState {fields['zk_migration_state']}") from error

    def _register_controller(self, fields: Mapping[str, Any], offset: int) -> None:
        self._controllers[fields["controller_id"]] = fields["zk_migration_ready"]


_APPLY: Mapping[str, Callable[[Replay, Mapping[str, Any], int], None]] = {
    "RegisterBroker": Replay._register_broker,
    "UnregisterBroker": Replay._unregister_broker,
    "BrokerRegistrationChange": Replay._change_registration,
    "FenceBroker": Replay._fence,
    "UnfenceBroker": Replay._unfence,
    "FeatureLevel": Replay._feature_level,
    "ZkMigrationState": Replay._migration_state,
    "RegisterController": Replay._register_controller,
}
