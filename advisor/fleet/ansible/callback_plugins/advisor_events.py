"""One line of JSON on standard output for each host that is done, in place of Ansible's own page."""

from __future__ import annotations

import json
import sys
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
    name: advisor_events
    type: stdout
    short_description: one line of JSON for each host that is done
    description:
        - Read by advisor fleet, which starts ansible-playbook with it.
"""

_LONGEST = 4000


class CallbackModule(CallbackBase):  # type: ignore[misc]  # Ansible has no types
    """Says which host is done and, where Ansible could not even ask it, why."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "advisor_events"

    def _print_event(self, result: Any, state: str) -> None:
        data = getattr(result, "_result", None) or {}
        message = str(data.get("msg") or data.get("message") or "")[:_LONGEST]
        host = result._host.get_name()
        sys.stdout.write(json.dumps({"advisor": 1, "host": host, "state": state, "message": message}) + "\n")
        sys.stdout.flush()

    def v2_runner_on_ok(self, result: Any) -> None:
        self._print_event(result, "ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._print_event(result, "failed")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._print_event(result, "unreachable")

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._print_event(result, "failed")
