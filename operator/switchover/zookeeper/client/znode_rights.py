"""What the credentials of a ZooKeeper client may do by a node's ACL."""

from collections.abc import Iterable, Mapping

from kazoo.security import ACL, Permissions, make_digest_acl_credential

from switchover.network.sasl import login

EVERYTHING = frozenset({"READ", "WRITE", "CREATE", "DELETE", "ADMIN"})
_BITS = {Permissions.READ: "READ", Permissions.WRITE: "WRITE", Permissions.CREATE: "CREATE",
         Permissions.DELETE: "DELETE", Permissions.ADMIN: "ADMIN"}
_JUDGED = frozenset({"world", "digest", "sasl"})


def identities(properties: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Scheme and id of everybody whom these credentials make of us."""
    found = {("world", "anyone")}
    if digest := properties.get("zookeeper.digest"):
        user, _, password = digest.partition(":")
        found.add(("digest", make_digest_acl_credential(user, password)))
        if user == "super":
            found.add(("digest", "super"))
    if line := properties.get("zookeeper.sasl.jaas.config"):
        found.add(("sasl", login("zookeeper.sasl.jaas.config", line).options["username"]))
    return frozenset(found)


def granted(acl: Iterable[ACL], ours: frozenset[tuple[str, str]]) -> frozenset[str]:
    """The operations that the entries for one of our identities allow; ZooKeeper's `super` may do everything."""
    if ("digest", "super") in ours:
        return EVERYTHING
    bits = 0
    for entry in acl:
        if (entry.id.scheme, entry.id.id) in ours:
            bits |= entry.perms
    return frozenset(name for bit, name in _BITS.items() if bits & bit)


def unjudged(acl: Iterable[ACL]) -> tuple[str, ...]:
    """Schemes of entries of which nobody can say from here whether they mean us, such as ip and x509."""
    return tuple(sorted({entry.id.scheme for entry in acl} - _JUDGED))
