"""`python -m tests.lab`: a guest for one command, or one that stays up for many."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from .guest import ATTEMPTS, CannotRunError, Guest, LabError, Machine, build_image
from .hardware import PRESETS
from .serve import POWER_METHODS, ServedGuest, serve


def main() -> int:
    """The exit status: the command's own, 3 if the lab cannot run here, 1 if it failed."""
    options = _parser().parse_args()
    try:
        return _act(options)
    except CannotRunError as error:
        print(f"lab: cannot run here: {error}", file=sys.stderr)
        return 3
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("build", help="build the image if it is not there, print where it is")
    run = actions.add_parser("run", help="boot a guest, run a command, stop the guest")
    run.add_argument("--hardware", choices=PRESETS, default="storage-host")
    served = actions.add_parser("serve", help="boot a guest and keep it up until `stop`")
    served.add_argument("--hardware", choices=PRESETS, default="storage-host")
    served.add_argument("--detach", action="store_true", help="return when the guest is up")
    execute = actions.add_parser("exec", help="run a command in a served guest")
    put = actions.add_parser("put", help="copy a file into a served guest")
    put.add_argument("source", type=Path)
    put.add_argument("destination")
    power = [actions.add_parser(name.replace("_", "-"), help=f"{name} a served guest") for name in POWER_METHODS]
    for action in (served, execute, put, *power):
        action.add_argument("--socket", type=Path, required=True, help="where the server listens")
    for action in (run, execute):
        action.add_argument("--timeout", type=float, default=300, help="seconds")
        action.add_argument("--user", default="root", help="root or plain")
        action.add_argument("command", nargs="+", help="one word goes to sh -c, several are executed as they are")
    return parser


def _act(options: argparse.Namespace) -> int:
    match options.action:
        case "build":
            print(build_image())
        case "run":
            with Guest(PRESETS[options.hardware]) as guest:
                return _execute(guest, options)
        case "serve" if options.detach:
            return _serve_detached(options)
        case "serve":
            # The tree may be edited while this guest is up; looking again at every file makes it slower.
            hardware = replace(PRESETS[options.hardware], kernel_arguments="lab.live-src")
            serve(Guest(hardware), options.socket)
        case "exec":
            return _execute(ServedGuest(options.socket), options)
        case "put":
            source: Path = options.source
            mode = source.stat().st_mode & 0o7777
            ServedGuest(options.socket).put(options.destination, source.read_bytes(), mode)
        case method:
            getattr(ServedGuest(options.socket), method.replace("-", "_"))()
    return 0


def _execute(machine: Machine, options: argparse.Namespace) -> int:
    words: list[str] = options.command
    result = machine.run(words[0] if len(words) == 1 else words, timeout=options.timeout, user=options.user)
    sys.stdout.buffer.write(result.stdout_bytes)
    sys.stdout.flush()
    sys.stderr.buffer.write(result.stderr_bytes)
    if result.timed_out:
        print(f"lab: killed after {options.timeout:.0f} s", file=sys.stderr)
    return result.rc


def _serve_detached(options: argparse.Namespace) -> int:
    build_image()  # Here, so that its failure is reported here.
    path: Path = options.socket
    log_path = path.with_name(path.name + ".log")
    command = [sys.executable, "-m", "tests.lab", "serve", "--hardware", options.hardware, "--socket", str(path)]
    path.unlink(missing_ok=True)
    with log_path.open("wb") as log:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + ATTEMPTS * 200
    while not path.exists():
        if server.poll() is not None or time.monotonic() > deadline:
            server.terminate()
            raise LabError(f"the guest did not come up:\n{log_path.read_text()}")
        time.sleep(0.2)
    print(log_path.read_text(), end="", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
