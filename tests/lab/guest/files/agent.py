"""The lab's agent inside the guest: one JSON request per line in, one JSON reply per line out.

Requests carry an `id`, an `op` and the operation's own keys; replies repeat the `id`. Bytes travel as base64.

    {"op": "ping"}
    {"op": "run", "argv": [str], "timeout": seconds, "input": b64, "env": {str: str}, "user": str, "cwd": str}
        → {"rc": int, "stdout": b64, "stderr": b64, "timed_out": bool, "seconds": float}
    {"op": "put", "path": str, "data": b64, "mode": int}    written, flushed to the disk, then renamed into place
    {"op": "get", "path": str} → {"data": b64}

A request that fails is answered with {"error": str, "errno": int | null}. Only the standard library is used,
and of it only what starts quickly under emulation.
"""

from __future__ import annotations

import base64
import json
import os
import pwd
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, BinaryIO

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def spool() -> BinaryIO:
    """A file in memory that a command's output goes to.

    Not a pipe: a background process that the command leaves behind keeps its end of a pipe open, and reading
    to the end would then wait for it.
    """
    return os.fdopen(os.memfd_create("spool"), "w+b")


def content(file: BinaryIO) -> str:
    """All of a file, as base64."""
    file.seek(0)
    return base64.b64encode(file.read()).decode()


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Run a command to its end or to its timeout."""
    account = pwd.getpwnam(request.get("user") or "root")
    env = {
        "PATH": PATH,
        "LANG": "C.UTF-8",
        "HOME": account.pw_dir,
        "USER": account.pw_name,
        "LOGNAME": account.pw_name,
        "SHELL": "/bin/sh",
        **(request.get("env") or {}),
    }
    switch: dict[str, Any] = {}
    if account.pw_uid != 0:
        switch = {
            "user": account.pw_uid,
            "group": account.pw_gid,
            "extra_groups": os.getgrouplist(account.pw_name, account.pw_gid),
        }
    started = time.monotonic()
    timed_out = False
    with spool() as given, spool() as stdout, spool() as stderr:
        given.write(base64.b64decode(request.get("input") or ""))
        given.seek(0)
        process = subprocess.Popen(
            request["argv"],
            stdin=given,
            stdout=stdout,
            stderr=stderr,
            env=env,
            cwd=request.get("cwd") or account.pw_dir,
            start_new_session=True,
            **switch,
        )
        try:
            process.wait(request.get("timeout"))
        except subprocess.TimeoutExpired:
            timed_out = True
            # The whole session's group, so that a shell's children go with the shell.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return {
            "rc": process.returncode,
            "stdout": content(stdout),
            "stderr": content(stderr),
            "timed_out": timed_out,
            "seconds": round(time.monotonic() - started, 3),
        }


def put(request: dict[str, Any]) -> dict[str, Any]:
    """Write a file so that it is whole or not there, and on the disk when answered."""
    path, temporary = request["path"], request["path"] + ".lab-put"
    os.makedirs(os.path.dirname(path) or "/", exist_ok=True)
    with open(temporary, "wb") as file:
        file.write(base64.b64decode(request["data"]))
        os.fchmod(file.fileno(), request["mode"])
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    directory = os.open(os.path.dirname(path) or "/", os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return {}


def get(request: dict[str, Any]) -> dict[str, Any]:
    """Read a file."""
    with open(request["path"], "rb") as file:
        return {"data": base64.b64encode(file.read()).decode()}


def ping(_request: dict[str, Any]) -> dict[str, Any]:
    """Say how long the guest has been up, in seconds."""
    return {"uptime": time.clock_gettime(time.CLOCK_BOOTTIME)}


OPERATIONS = {"run": run, "put": put, "get": get, "ping": ping}


def answer(line: bytes) -> dict[str, Any]:
    """Carry out one request; never raises."""
    try:
        request = json.loads(line)
    except ValueError as error:
        return {"id": None, "error": f"not JSON: {error}", "errno": None}
    try:
        return {"id": request.get("id"), **OPERATIONS[request["op"]](request)}
    except Exception as error:  # noqa: BLE001  # the agent must outlive any request
        return {
            "id": request.get("id"),
            "error": f"{type(error).__name__}: {error}",
            "errno": getattr(error, "errno", None),
        }


def print_console() -> None:
    """For who has to find out why a start failed: it came this far."""
    with open("/dev/console", "w", encoding="ascii") as console:
        console.write("lab: agent\n")


def main() -> None:
    """Serve the port named on the command line, for ever."""
    print_console()
    # Commands must not inherit the port: two readers would share the requests between them.
    port = os.open(sys.argv[1], os.O_RDWR | os.O_CLOEXEC)
    with os.fdopen(port, "rb", buffering=0, closefd=False) as reader:
        pending = b""
        send(port, {"id": None, "hello": 1, **ping({})})
        while True:
            chunk = reader.read(1 << 16)
            if not chunk:  # The host's end is closed; it may come back.
                time.sleep(0.05)
                continue
            pending += chunk
            while b"\n" in pending:
                line, pending = pending.split(b"\n", 1)
                if line.strip():
                    send(port, answer(line))


def send(port: int, reply: dict[str, Any]) -> None:
    """Write one line, however many writes that takes."""
    data = json.dumps(reply).encode() + b"\n"
    while data:
        data = data[os.write(port, data) :]


if __name__ == "__main__":
    main()
