"""Secured clusters: the controllers' listener has keys that Kafka can use, and the nodes are allowed what they do on it."""

from collections.abc import Iterator

from switchover.core.gate import Verdict, fail, warn
from switchover.core.kraft import certificates, controllers, listener, modes, principals
from switchover.core.kraft.listener import ScramRefused, Unusable
from switchover.core.kraft.picture import Picture
from switchover.core.kraft.preflight.reading import check, configured, kubernetes, several


def _secret(picture: Picture) -> str:
    reference = picture.spec.controllers.listener.credentials_ref
    return f"Secret {reference.name}" if reference is not None else "spec.controllers.listener"


def find_unusable_credentials(picture: Picture) -> Iterator[Verdict]:
    own, subject = picture.spec.controllers.listener, _secret(picture)
    credentials = kubernetes(picture).listener_credentials
    if isinstance(credentials, str):
        yield fail("ListenerCredentialsUnusable", credentials, subject=subject,
                   unblocks="create it, or correct spec.controllers.listener.credentialsRef")
        return
    try:
        settings = listener.node_settings(own, credentials)
        if chain := credentials.get("ssl.keystore.certificate.chain") if own.security_protocol.endswith("SSL") else None:
            certificates.check_usable(chain, picture.now)
    except ScramRefused as why:
        yield fail("ScramOnControllers", f"{subject}: {why}", subject=subject, observed=credentials["sasl.mechanism"],
                   threshold="PLAIN", unblocks="use PLAIN or client certificates on the controllers' listener; the brokers'"
                   " own listeners may keep SCRAM")
        return
    except Unusable as why:
        yield fail("ListenerCredentialsUnusable", f"{subject}: {why}", subject=subject,
                   unblocks="correct that key of the Secret")
        return
    if chain and settings.get(_identification(own.name), "https"):
        hosts = [address.host for address in controllers.addresses(picture.spec, picture.namespace).values()]
        if missing := [host for host in hosts if not certificates.is_valid_for(chain, host)]:
            yield fail("CertificateLacksNames", f"the certificate in {subject} does not name {several(missing)}: nodes would"
                       " not trust each other", subject=subject, observed=several(certificates.names(chain)),
                       threshold=f"*.{hosts[0].partition('.')[2]}",
                       unblocks="issue it for the names of all controllers' pods, as a wildcard or one by one")
    yield from _overridden(picture, settings)


def _identification(name: str) -> str:
    return f"listener.name.{name.lower()}.ssl.endpoint.identification.algorithm"


def _overridden(picture: Picture, settings: dict[str, str]) -> Iterator[Verdict]:
    """Keys that we write or take away, where a command line would put its own back."""
    ours = {*settings, *(modes.OWN_STORES if any(".ssl.keystore." in key for key in settings) else ())}
    for found in configured(picture):
        if changed := sorted(ours & set(found.overridden)):
            yield fail("OverriddenOnCommandLine", f"the command line overrides {several(changed)}, which the migration must"
                       " change in the file; the command line would win", subject=several(changed),
                       unblocks=f"move --override {changed[0]} from the container's command into the file")


def find_unauthorized_nodes(picture: Picture) -> Iterator[Verdict]:
    """With an authorizer, whoever the nodes are to the controllers must be a super user.

    Before the copy the controllers know no ACL at all, and brokers could not register by one.
    """
    credentials = kubernetes(picture).listener_credentials
    if isinstance(credentials, str):
        return
    for found in configured(picture):
        authorizer = found.keys.get("authorizer.class.name", "").strip()
        if authorizer not in (modes.ACL_AUTHORIZER, modes.STANDARD_AUTHORIZER):
            continue
        try:
            principal = principals.of_the_nodes(picture.spec.controllers.listener, credentials, found.keys)
        except Unusable:
            return                                       # told above
        if principal is None:
            yield warn("ControllersPrincipalUnknown", f"{found.source} gives principals names that only Kafka can work out,"
                       " and has an authorizer: as whom the nodes meet on the controllers' listener is not known here",
                       subject="super.users", observed=found.keys.get("super.users", ""),
                       cure="make sure that the principal of the controllers' certificate or user is in super.users")
        elif principal not in principals.super_users(found.keys):
            yield fail("ControllersNotAuthorized", f"{found.source} has an authorizer, and {principal}, as whom the nodes"
                       " meet on the controllers' listener, is not in super.users: no broker could register",
                       subject="super.users", observed=found.keys.get("super.users", ""), threshold=principal,
                       unblocks=f"add {principal} to super.users on every broker, or secure the controllers' listener with"
                       " credentials of a super user")


CHECKS = (
    check("ListenerUsable", find_unusable_credentials, "the controllers' listener can be served and reached"),
    check("NodesAuthorized", find_unauthorized_nodes, "the nodes are allowed what they do on the controllers' listener"),
)
