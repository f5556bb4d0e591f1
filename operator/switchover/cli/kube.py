"""The connection to the API server, and the namespace to work in, found as kubectl finds them."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from switchover.answers.errors import Refused
from switchover.cli.command import Place
from switchover.kubernetes.client.api_server import ApiServer, connect


@asynccontextmanager
async def connected(place: Place) -> AsyncIterator[ApiServer]:
    """A connection to the API server, in the namespace that counts.

    The namespace is that of the option, of POD_NAMESPACE (a pod's), or of the context. Raises Refused where there are no
    credentials.
    """
    server = await connect(place.namespace or os.environ.get("POD_NAMESPACE", ""), kubeconfig_of(place, os.environ),
                           place.context)
    try:
        yield server
    finally:
        await server.close()


def kubeconfig_of(place: Place, environment: Mapping[str, str]) -> str:
    """The kubeconfig files, or "" in a pod without any. Refused where there is neither."""
    usual = Path(environment.get("HOME", "/")) / ".kube" / "config"
    given = place.kubeconfig or environment.get("KUBECONFIG", "")
    files = given or (str(usual) if usual.exists() else "")
    if not files:
        if "KUBERNETES_SERVICE_HOST" in environment and not place.context:
            return ""
        raise Refused(f"there is no kubeconfig: neither {usual} nor KUBECONFIG; name one with --kubeconfig")
    if not any(Path(file).expanduser().exists() for file in files.split(os.pathsep) if file):
        raise Refused(f"the kubeconfig {files} does not exist")
    return files
