"""A Kafka node with an authorizer and three users: admin may do all, switchover what it is allowed, hidden nothing."""

from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
from kio.schema.create_acls.v3.response import CreateAclsResponse
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8

from adapters.clusters import KRaftNode
from adapters.group_members import ask
from switchover.network.addresses import Address

TOPIC, GROUP, CLUSTER = 2, 3, 4
READ, DESCRIBE, DESCRIBE_CONFIGS = 3, 8, 10
ALLOW = 3

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def user(name: str) -> dict[str, str]:
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN} username="{name}" password="{name}-secret";'}


def settings(server: KRaftNode) -> str:
    """What the node itself does goes over the controllers' listener, where everybody is ANONYMOUS."""
    users = " ".join(f'user_{name}="{name}-secret"' for name in ("admin", "switchover", "hidden"))
    return (
        f"listeners=SASL_PLAINTEXT://{server.address},CONTROLLER://{server.address.host}:9093\n"
        "listener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        "security.inter.broker.protocol=SASL_PLAINTEXT\nsasl.mechanism.inter.broker.protocol=PLAIN\n"
        "sasl.enabled.mechanisms=PLAIN\nauthorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
        "super.users=User:admin;User:ANONYMOUS\n"
        f'listener.name.sasl_plaintext.plain.sasl.jaas.config={PLAIN} username="admin" password="admin-secret" {users};\n'
    )


async def allow(server: Address, kind: int, name: str, operation: int) -> None:
    answer = await ask(server, CreateAclsRequest(creations=(AclCreation(
        resource_type=i8(kind), resource_name=name, principal="User:switchover", host="*", operation=i8(operation),
        permission_type=i8(ALLOW)),)), CreateAclsResponse, user("admin"))
    assert answer.results[0].error_code is ErrorCode.none, answer.results[0].error_message
