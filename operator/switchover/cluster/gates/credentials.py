"""What must hold of the credentials of the controllers' listener while nodes are moved."""

from switchover.cluster.controllers import listener
from switchover.cluster.picture import Picture
from switchover.cluster.reading import kubernetes_of
from switchover.engine.gate import Gate, Verdict, fail, passed
from switchover.network.credentials import Unusable
from switchover.reasons.cluster import LISTENER_CREDENTIALS_CHANGED, LISTENER_CREDENTIALS_UNUSABLE


def check_listener_credentials(picture: Picture) -> Verdict:
    """The Secret can be read, and a password in it is the one that the controllers run with.

    A node that starts with another password could not talk to the others. Certificates may change: each node takes the new
    ones when it is restarted, and trusts whom its truststore names.
    """
    own = picture.spec.controllers.listener
    state = kubernetes_of(picture)
    if own.credentials_ref is None:
        return passed("the controllers' listener has no credentials")
    secret = f"Secret {own.credentials_ref.name}"
    credentials = state.listener_credentials
    try:
        if isinstance(credentials, str):
            raise Unusable(credentials)
        wanted = listener.node_settings(own, credentials)
    except Unusable as why:
        return fail(LISTENER_CREDENTIALS_UNUSABLE, f"{secret}: {why}; no node is moved, since its file could not be written",
                    subject=secret, unblocks="put the Secret back as it was")
    if not listener.same_login(wanted, picture.controller_files):
        return fail(LISTENER_CREDENTIALS_CHANGED, f"the user or password in {secret} is not the one that the controllers"
                    " run with: a node that starts now could not talk to the others", subject=secret,
                    unblocks="put the old user and password back until the migration has ended")
    return passed("the credentials of the controllers' listener are as they were")


LISTENER_CREDENTIALS: Gate[Picture] = Gate("ListenerCredentials", check_listener_credentials)
