"""Properties files of every kind, for the door: as people write them, and as noise."""

import random
from collections.abc import Iterator

FILES: dict[str, bytes] = {
    "plain": b"""\
# brokers
broker.id=1
zookeeper.connect=zookeeper:2181/kafka
listeners=INTERNAL://:9092,CLIENTS://:9094
listener.security.protocol.map=INTERNAL:PLAINTEXT,CLIENTS:SASL_SSL
inter.broker.listener.name=INTERNAL
log.dirs=/data
min.insync.replicas=2
""",
    "nothing": b"",
    "comments alone": b"# a\n\n! b\n",
    "no newline at the end": b"broker.id=1\nlog.dirs=/data",
    "a backslash at the end": b"broker.id=1\nlog.dirs=/data\\",
    "a continuation to nowhere": b"broker.id=1\nlog.dirs=/data\\\n",
    "carriage returns": b"broker.id=1\r\nlog.dirs=/a,\\\r\n  /b\r\nzookeeper.connect=zk\r\n",
    "lone carriage returns": b"broker.id=1\rlog.dirs=/a\r#c\rzookeeper.connect=zk\r",
    "separators": b"broker.id : 1\nlog.dirs /data\n\tlisteners\t=\tA://:1\nempty\nempty2=\nempty3 :\n=no key\n:  neither\n",
    "escapes": b"broker.id=1\nlistener.security.protocol.map=INTERNAL\\:PLAINTEXT, CLIENTS\\:SSL\n"
               b"a\\ b\\=c=\\t\\n\\r\\f\\\\ \\q\\u0041\\u20ac\n",
    "own stores": b"ssl.keystore.location=/k\nssl.keystore.password=p\\\\q\nssl.truststore.location=/t\n"
                  b"listener.name.clients.ssl.truststore.location=/u\n"
                  b"listener.security.protocol.map=INTERNAL:SSL,CLIENTS:SASL_SSL,CONTROLLER:PLAINTEXT\n",
    "an authorizer": b"authorizer.class.name= kafka.security.authorizer.AclAuthorizer \n"
                     b"super.users=User:CN=J\xfcrgen;User:b\n",
    "another authorizer": b"authorizer.class.name=org.example.Own\n",
    "an old protocol": b"inter.broker.protocol.version=2.8\nlog.message.format.version=2.8\n"
                       b"control.plane.listener.name=CONTROL\n",
    "duplicates": b"log.dirs=/a\nzookeeper.connect=a\nlog.dirs=/b\n#x\nzookeeper.connect=b\nnode.id=7\nnode.id=8\n",
    "continued keys": b"log\\\n  .dirs\\\n  = /data\\\n  /more\nzookeeper.\\\nconnect=zk\n",
    "comments in continuations": b"log.dirs=a,\\\n#b,\\\n   !c\n\\\n# a comment after all\n\\\n\nx=1\n",
    "backslashes": b"a=1\\\\\nb=2\\\\\\\nc=3\n\\#=4\n\\!\\:=5\n",
    "form feeds": b"\x0c broker.id\x0c=\x0c1\n\x0c# c\na=\\\x0c1\n",
    "a listener of the controllers' name": b"listener.security.protocol.map=CONTROLLER:SSL , A:PLAINTEXT,, CONTROLLER : X\n",
    "a security protocol": b"security.inter.broker.protocol=SASL_PLAINTEXT\nsasl.mechanism.inter.broker.protocol=PLAIN\n",
    "odd keys": b"a[1]=x\na*b=y\n@=z\n$(id)=1\n`id`=2\n&=3\n\x01=4\n\\u0001b=5\n\xe9=6\n",
    "malformed": b"a=\\u12g4\n",
}

_PIECES = [b"a", b"b.c", b"zookeeper.", b"=", b":", b" ", b"\t", b"\x0c", b"\\", b"\\\\", b"\n", b"\r", b"\r\n", b"#", b"!",
           b"\\u0041", b"\\u00e9", b"\\u20AC", b"\\t", b"\\ ", b"\\=", b",", b"\xe9", b"\x01", b"$(id)", b"'",
           b'"', b"]", b"&",
           b"*", b"\\\n", b"\\\r\n"]


def fuzzed(count: int, seed: int = 7) -> Iterator[bytes]:
    """Files of up to forty pieces that mean something to a reader."""
    chosen = random.Random(seed)
    for _ in range(count):
        yield b"".join(chosen.choice(_PIECES) for _ in range(chosen.randrange(40)))
