"""What clients of the Kubernetes API cost, each in an environment of its own: size, import, memory, CPU of a request.

    python -m measure_clients

Every client reads a list of Pods again and again from a server on loopback, by its own kubeconfig loader and its shortest
way to plain dictionaries; `aiohttp` is the floor, with no kubeconfig at all. CPU by the process's own clock.
"""

import json
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

UV = Path(__file__).parents[1] / "build/uv/bin/uv"
CLIENTS = {"kubernetes": "==37.0.2", "lightkube": "==1.0.1", "kr8s": "==0.20.15", "aiohttp": ""}
PODS = "/api/v1/namespaces/demo/pods"
CONTAINER = {"name": "c", "image": "x", "env": [{"name": f"E{n}", "value": "v" * 30} for n in range(20)]}
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{server}"}}}}]
users: [{{name: u, user: {{token: t}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u, namespace: demo}}}}]
current-context: x
"""
SCRIPT = """
import asyncio, json, os, resource, sys, time
which, kubeconfig, server = sys.argv[1:]
path = "/api/v1/namespaces/demo/pods?limit="
began = time.process_time()
if which == "kubernetes":
    from kubernetes.aio.client import ApiClient, Configuration
    from kubernetes.aio.config import load_kube_config
    from kubernetes.aio.dynamic import DynamicClient
elif which == "lightkube":
    from lightkube.config.client_adapter import AsyncClient, ConnectionParams
    from lightkube.config.kubeconfig import KubeConfig
elif which == "kr8s":
    import kr8s.asyncio
else:
    import aiohttp
imported = time.process_time() - began
memory = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
after_import = memory()

async def reader():
    if which == "kubernetes":
        configuration = Configuration()
        await load_kube_config(kubeconfig, client_configuration=configuration, persist_config=False)
        dynamic = DynamicClient(ApiClient(configuration))
        return lambda pods: dynamic.request(
            "GET", path + str(pods), serializer=lambda _, data: data, query_params=[], header_params={})
    if which == "lightkube":
        client = AsyncClient(KubeConfig.from_file(kubeconfig).get(), ConnectionParams())
        async def read(pods):
            return json.loads((await client.get(path + str(pods))).content)
        return read
    if which == "kr8s":
        api = await kr8s.asyncio.api(kubeconfig=kubeconfig)
        async def read(pods):
            async with api.call_api("GET", base=path + str(pods), version="") as answer:
                return json.loads(answer.content)
        return read
    session = aiohttp.ClientSession()
    async def read(pods):
        async with session.get(server + path + str(pods), headers={"Authorization": "Bearer t"}) as answer:
            return json.loads(await answer.read())
    return read

async def main():
    read, costs = await reader(), []
    for pods, times in ((1, 1000), (100, 200)):
        assert len((await read(pods))["items"]) == pods
        began = time.process_time()
        for _ in range(times):
            await read(pods)
        costs.append((time.process_time() - began) / times * 1000)
    print(f"| {imported:.2f} s | {after_import} / {memory()} MiB | {costs[0]:.2f} ms | {costs[1]:.2f} ms |", flush=True)
    os._exit(0)

asyncio.run(main())
"""


class Pods(BaseHTTPRequestHandler):
    """Answers with as many Pods as the limit says, and with a version."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        answer: object = {"major": "1", "minor": "36", "gitVersion": "v1.36.3"}
        if self.path.startswith(PODS):
            answer = {"kind": "PodList", "items": [
                {"metadata": {"name": f"p{n}"}, "spec": {"containers": [CONTAINER]}, "status": {"phase": "Running"}}
                for n in range(int(self.path.partition("limit=")[2].rstrip("/")))]}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pods)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    print("| client | installed | import | memory after it / at the end | list of 1 Pod | of 100 |\n" + "|---" * 6 + "|")
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = Path(directory, "kubeconfig")
        kubeconfig.write_text(KUBECONFIG.format(server=address))
        for client, version in CLIENTS.items():
            environment = Path(directory, client)
            install = ("pip", "install", "--compile-bytecode", "--python", environment / "bin/python", client + version)
            for command in (("venv", "--python", sys.executable, environment), install):
                subprocess.run((UV, *command), check=True, capture_output=True)
            packages = environment / "lib/python3.11/site-packages"
            size = sum(file.stat().st_size for file in packages.rglob("*") if file.is_file() and file.suffix != ".pyc") / 1e6
            told = subprocess.run((environment / "bin/python", "-c", SCRIPT, client, kubeconfig, address),
                                  check=False, capture_output=True, text=True)
            result = told.stdout.strip() or "| " + told.stderr.strip().splitlines()[-1]
            print(f"| {client}{version} | {size:.0f} MB {result}", flush=True)


if __name__ == "__main__":
    main()
