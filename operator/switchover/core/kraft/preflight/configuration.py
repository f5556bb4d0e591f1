"""The brokers' configuration: it can be carried through every mode, and nothing would undo what we write."""

from collections.abc import Iterator

from switchover.api.kafka_migration import BrokerSet
from switchover.core.gate import Unseen, Verdict, fail, info, unknown, warn
from switchover.core.kraft import environment, modes, template
from switchover.core.kraft.facts import ServerConfiguration
from switchover.core.kraft.picture import Picture
from switchover.core.kraft.preflight.reading import Configured, check, configured, kubernetes, several, workloads

SECRET_BYTES = 1_000_000
"""A little less than the 1 MiB that the API server takes for all values of a Secret."""
TOKEN_KEYS = ("delegation.token.secret.key", "delegation.token.master.key")


def find_unusable_files(picture: Picture) -> Iterator[Verdict]:
    state = kubernetes(picture)
    for name, brokers, workload in workloads(picture):
        configuration = state.configurations.get(name)
        if not isinstance(configuration, ServerConfiguration):
            raise Unseen(unknown("NotObserved", f"the configuration of {name} cannot be read", subject=name))
        try:
            modes.properties(configuration.text)
        except ValueError as reason:
            yield fail("ConfigurationMalformed", f"{configuration.source} is no properties file: {reason}",
                       subject=configuration.source, unblocks="correct the file")
            return
        try:
            template.broker_container(workload, brokers)
        except template.Unsupported as reason:
            yield fail("TemplateUnsupported", f"StatefulSet {name}: {reason}", subject=f"StatefulSet {name}",
                       unblocks="correct spec.brokers[].container")
            return
        try:
            _try_environment(picture, brokers, configuration.text)
        except environment.Unusable as reason:
            yield fail("TemplateUnsupported", f"StatefulSet {name}: {reason}", subject=f"StatefulSet {name}",
                       unblocks="choose a spec.controllers.listener.name of letters and digits alone")
            return
        size = max(workload.replicas, picture.spec.controllers.replicas) * len(configuration.text) + sum(
            map(len, configuration.other_keys.values()))
        if size > SECRET_BYTES:
            yield fail("ConfigurationTooLarge", f"{configuration.source} is too large to be kept once for each pod",
                       subject=configuration.source, observed=f"{size} bytes", threshold=f"{SECRET_BYTES} bytes",
                       unblocks="make it smaller")
    for broker_set in configured(picture):
        yield from _contradictions(picture, broker_set)


def _try_environment(picture: Picture, brokers: BrokerSet, text: str) -> None:
    """Raises Unusable where a mode changes a property that the image has no variable for."""
    if picture.voters is not None:
        for mode in ("B", "C"):
            template.node_file(brokers, text, modes.render_broker(text, mode, 0, picture.voters))


def _contradictions(picture: Picture, found: Configured) -> Iterator[Verdict]:
    source, keys, listener = found.source, found.keys, picture.spec.controllers.listener.name
    ours = modes.BROKER_KEYS | ({modes.PROTOCOL_VERSION} if modes.is_too_old(found.text) else set())
    if changed := sorted(ours & set(found.overridden)):
        yield fail("OverriddenOnCommandLine", f"the command line overrides {several(changed)}, which the migration must"
                   " change in the file; the command line would win", subject=several(changed),
                   observed=several(found.overridden[key] for key in changed),
                   unblocks=f"take {changed[0]} out of the container's command")
    if "process.roles" in keys:
        yield fail("AlreadyKRaft", f"{source} sets process.roles: these brokers do not run on ZooKeeper", subject=source,
                   observed=keys["process.roles"], unblocks="nothing to migrate")
    if modes.MIGRATION_FLAG in keys or "controller.quorum.voters" in keys:
        yield fail("MigrationAlreadyConfigured", f"{source} already has settings of a migration begun by hand",
                   subject=source, unblocks=f"remove {modes.MIGRATION_FLAG} and controller.* from it")
    if listener in {item.partition("://")[0].strip() for item in keys.get("listeners", "").split(",")}:
        yield fail("ListenerNameTaken", f"the brokers have a listener {listener} of their own", subject=source,
                   unblocks="choose another spec.controllers.listener.name")


def find_features_that_change(picture: Picture) -> Iterator[Verdict]:
    """What behaves differently during or after the migration (kraft-migration.md section 4, numbers 21 and 23)."""
    for found in configured(picture):
        if policy := found.keys.get("alter.config.policy.class.name"):
            yield warn("AlterConfigPolicy", f"{found.source} has an AlterConfigPolicy, which KRaft gives other values than"
                       " ZooKeeper did (KAFKA-19026)", subject="alter.config.policy.class.name", observed=policy,
                       cure="read KIP-1252, and try the policy on a KRaft cluster first")
        if any(key in found.keys for key in TOKEN_KEYS):
            yield info("DelegationTokens", "delegation tokens are in use: during the migration only the controller's broker"
                       " creates, renews and expires them, others answer NOT_CONTROLLER", subject=found.source,
                       cure="renew tokens before it begins, or let clients repeat the request")


CHECKS = (
    check("Configuration", find_unusable_files, "the configuration can be carried through every mode"),
    check("Features", find_features_that_change, "features that change were looked for"),
)
