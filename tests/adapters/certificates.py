"""Certificates for one test, made by openssl."""

import subprocess
from ipaddress import ip_address
from pathlib import Path

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Certificates:
    """An authority, a server certificate for some addresses or names, and a client certificate, each as PEM text."""

    def __init__(self, directory: Path, *hosts: str) -> None:
        self._directory = directory
        self._openssl("req", "-x509", *_NEW_KEY, "-subj", "/CN=authority", "-days", "2",
                      "-keyout", "authority.key", "-out", "authority.crt")
        self.authority = self._read("authority.crt")
        self._names = "subjectAltName=" + ",".join(map(_subject_name, hosts))
        self.server_chain, self.server_key = self._issue("server", self._names)
        self.client_chain, self.client_key = self._issue("client", "extendedKeyUsage=clientAuth")

    def another_server(self, name: str) -> tuple[str, str]:
        """Certificate and key of a server on the same addresses, with the subject CN=`name`."""
        return self._issue(name, self._names)

    def server_store(self, name: str, password: str) -> tuple[Path, str]:
        """Another key of the same server in a PKCS #12 file, and its certificate."""
        chain, _ = self._issue(name, self._names, subject="server")
        self._openssl("pkcs12", "-export", "-in", f"{name}.crt", "-inkey", f"{name}.key", "-out", f"{name}.p12",
                      "-passout", f"pass:{password}")
        return self._directory / f"{name}.p12", chain

    def encrypted_client_key(self, password: str) -> str:
        """The client's key behind a password."""
        self._openssl("pkcs8", "-topk8", "-in", "client.key", "-passout", f"pass:{password}", "-out", "client.enc")
        return self._read("client.enc")

    def broker_properties(self) -> str:
        """TLS of a Kafka broker that trusts the authority, as lines of its file."""
        values = {
            "ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": self.server_chain,
            "ssl.keystore.key": self.server_key, "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": self.authority,
        }
        return "".join(f"{key}={_one_line(value)}\n" for key, value in values.items())

    def _issue(self, name: str, extension: str, subject: str = "") -> tuple[str, str]:
        (self._directory / f"{name}.ext").write_text(extension)
        self._openssl("req", *_NEW_KEY, "-subj", f"/CN={subject or name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        self._openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "authority.crt", "-CAkey", "authority.key",
                      "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt")
        return self._read(f"{name}.crt"), self._read(f"{name}.key")

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self._directory, check=True, capture_output=True)

    def _read(self, name: str) -> str:
        return (self._directory / name).read_text()


def _subject_name(host: str) -> str:
    try:
        return f"IP:{ip_address(host)}"
    except ValueError:
        return f"DNS:{host}"


def _one_line(pem: str) -> str:
    return pem.strip().replace("\n", "\\n")
