"""Password configurations: which those are, and how ZooKeeper-mode Kafka encrypts them (`EncryptingPasswordEncoder`).

ZooKeeper holds them encrypted with `password.encoder.secret`, the metadata log in plain text.
"""

import hashlib
import re
from base64 import b64decode

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC, GCM
from cryptography.hazmat.primitives.padding import PKCS7

# DynamicBrokerConfig.DynamicPasswordConfigs; with a listener's prefix they are passwords, too.
_PASSWORDS = (
    "sasl.jaas.config", "ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.password",
    "ssl.truststore.certificates", "ssl.truststore.password",
)
_SECRET = re.compile(r"password|secret|jaas|credential|token|private", re.IGNORECASE)
ENCODER_SECRET = "password.encoder.secret"
"""The brokers' own setting, with which all of a cluster encrypt alike; Kafka never shows it."""
_KEY_FACTORY = re.compile(r"PBKDF2WithHmacSHA(1|224|256|384|512)")
_LARGEST_ITERATIONS = 10_000_000                # some seconds of work


class SecretNotKnown(str):
    """Why a node cannot be read: it is encrypted, and with what is not known."""


def is_password(name: str) -> bool:
    """Whether Kafka encrypts this broker configuration in ZooKeeper."""
    return name.endswith(_PASSWORDS)


def is_secret(name: str) -> bool:
    """Whether a value must not be shown: a password, or something of a plugin that sounds like one."""
    return is_password(name) or _SECRET.search(name) is not None


def decrypted(text: str, secret: str | None) -> str:
    """The password in plain text. What is not encrypted is what it is.

    Raises ValueError with the reason, which never contains anything of the value.
    """
    if secret is None:
        if "encryptedPassword:" in text:
            raise ValueError(SecretNotKnown(f"encrypted, and {ENCODER_SECRET} is not known"))
        return text
    parts = dict(item.split(":", 1) for item in text.split(",") if ":" in item)
    try:
        factory, cipher = parts["keyFactoryAlgorithm"], parts["cipherAlgorithm"]
        salt, data = b64decode(parts["salt"]), b64decode(parts["encryptedPassword"])
        iterations, bits, length = (int(parts[name]) for name in ("iterations", "keyLength", "passwordLength"))
        vector = b64decode(parts["initializationVector"])
    except (KeyError, ValueError) as error:
        raise ValueError("not a password as Kafka encrypts it") from error
    if (algorithm := _KEY_FACTORY.fullmatch(factory)) is None or not 0 < iterations <= _LARGEST_ITERATIONS:
        raise ValueError(f"encrypted with {factory} and {iterations} iterations, which Switchover does not know")
    key = hashlib.pbkdf2_hmac(f"sha{algorithm[1]}", secret.encode(), salt, iterations, bits // 8)
    try:
        plain = _opened(cipher, key, vector, data).decode()
    except (ValueError, InvalidTag) as error:
        raise ValueError("cannot be decrypted with password.encoder.secret") from error
    if len(plain.encode("utf-16-le")) // 2 != length:                   # Java counts UTF-16 units
        raise ValueError("cannot be decrypted with password.encoder.secret")
    return plain


def _opened(cipher: str, key: bytes, vector: bytes, data: bytes) -> bytes:
    match cipher:
        case "AES/CBC/PKCS5Padding":
            decryptor = Cipher(AES(key), CBC(vector)).decryptor()
            unpadder = PKCS7(128).unpadder()
            return unpadder.update(decryptor.update(data) + decryptor.finalize()) + unpadder.finalize()
        case "AES/GCM/NoPadding":
            decryptor = Cipher(AES(key), GCM(vector, data[-16:])).decryptor()
            return decryptor.update(data[:-16]) + decryptor.finalize()
        case _:
            raise ValueError(f"{cipher} is not supported")
