"""``advisor.host.profile`` on the controller: chooses the program that plans, and confirms through a new connection."""

from __future__ import annotations

import contextlib
import time

from ansible.errors import AnsibleConnectionFailure
from ansible_collections.advisor.host.plugins.module_utils.program import (
    PROFILE_ARGUMENTS,
    AdvisorError,
    active_transactions,
    mixed_refusal,
    plan_diff,
    plan_words,
    refusal,
    short_changes,
    short_skipped,
    value_diff,
    would_change,
)
from ansible_collections.advisor.host.plugins.plugin_utils.hosts import HostAction, describe_connection_failure

_GRACE_SECONDS = 20.0
"""How long after its deadline a change is rolled back at the latest, on a host that can be reached."""
_PAUSE_SECONDS = 1.0


class ActionModule(HostAction):
    """See the module."""

    ARGUMENTS = PROFILE_ARGUMENTS

    # The program of the host

    def act_on_host(self, params, task_vars):
        if params["state"] == "confirmed":
            self.reconnect()
        result = self._run_module(params, task_vars)
        if self._waits(result, params):
            result = self._confirm(
                result,
                params,
                lambda: self._run_module(dict(params, state="confirmed"), task_vars),
                lambda: self._run_module(dict(params, state="rolled_back"), task_vars),
            )
        if result.get("changed") and not self._task.check_mode:
            # A kept connection may have been made for an MTU that its link has no longer.
            self.reconnect()
        return result

    def _run_module(self, params, task_vars):
        return self._execute_module(
            module_name="advisor.host.profile", module_args=params, task_vars=task_vars, wrap_async=False
        )

    # The program of the controller

    def act_from_controller(self, params, task_vars):
        if params["state"] == "confirmed":
            raise AdvisorError("state: confirmed needs advisor on the host; leave it to confirm: true", rc=2)
        if params["state"] == "rolled_back":
            return self._roll_back_from_controller(params, task_vars)
        with self.capture(task_vars) as place:
            words = plan_words(params)
            plan = place.ask(["plan", *words, "--snapshot", place.capture])
            result = {
                "state": "unchanged",
                "changes": short_changes(plan),
                "skipped_values": short_skipped(plan),
                "fingerprint": plan["fingerprint"],
                "replaced": [],
                "deadline": None,
                "changed": False,
            }
            if not would_change(plan):
                if not any(one["state"] in ("in-place", "would-lower") for one in plan["skipped"]):
                    raise refusal(plan)
                return result
            script = place.write_script(["apply-script", *words, "--snapshot", place.capture])
            self.run_script(script, ["check"])
            result["diff"] = plan_diff(plan)
            if self._task.check_mode:
                return dict(result, changed=True, state="planned")
            arguments = ["apply", "--confirm-within", str(params["confirm_within"])]
            for peer in params["peers"]:
                arguments += ["--peer", peer]
            done = self.run_script(script, arguments)
            result.update(
                changed=done["state"] in ("applied", "awaiting-confirmation"),
                state=done["state"],
                transaction=done["id"],
                deadline=None,
            )
            if self._waits(result, params):
                result = self._confirm(
                    result,
                    params,
                    lambda: self._ask_script(script, "confirm"),
                    lambda: self._ask_script(script, "rollback"),
                )
            self.reconnect()
            return result

    def _ask_script(self, script, verb):
        try:
            return {"state": self.run_script(script, [verb])["state"]}
        except AdvisorError as error:
            found = dict(error.fields, failed=True, msg=str(error))
        with contextlib.suppress(AdvisorError):
            found["script_state"] = self.run_script(script, ["status"])["state"]
        return found

    def _roll_back_from_controller(self, params, task_vars):
        with self.capture(task_vars, is_needed=any(not _is_name(one) for one in params["name"])) as place:
            profiles = list(params["name"])
            if place.capture is not None:
                profiles = place.ask(["plan", *plan_words(params), "--snapshot", place.capture])["profiles"]
            active = active_transactions(self.read_status(place), profiles)
            mixed = [one for one in active if set(one["profiles"]) - set(profiles)]
            if mixed:
                raise mixed_refusal(mixed)
            changes = [
                {"tunable": one["tunable"], "before": one["after"], "after": one["before"]}
                for transaction in active
                for one in transaction["changes"]
            ]
            result = {
                "state": "unchanged",
                "transaction": active[0]["id"] if active else None,
                "changes": changes,
                "changed": bool(active),
                "diff": value_diff([(one["tunable"], one["before"], one["after"]) for one in changes]),
            }
            if not active or self._task.check_mode:
                return dict(result, state="planned" if active else "unchanged")
            for number, one in enumerate(active):
                self.roll_back_by_script(one["id"], is_forced=params["force"], is_begun=number > 0)
            self.reconnect()
            return dict(result, state="rolled-back")

    # Confirmation

    def _waits(self, result, params):
        return (
            result.get("state") == "awaiting-confirmation"
            and params["state"] == "applied"
            and params["confirm"]
            and not result.get("failed")
            and not self._task.check_mode
        )

    def _confirm(self, result, params, ask, undo):
        """The result after a new connection has confirmed the change, or after the host is as it was."""
        end = time.monotonic() + params["confirm_within"] + _GRACE_SECONDS
        problem = "it ran out of time"
        while time.monotonic() < end:
            self.reconnect()
            try:
                answer = ask()
            except AnsibleConnectionFailure as error:
                problem = describe_connection_failure(error)
            else:
                if not answer.get("failed"):
                    return dict(result, state=answer.get("state", "applied"), deadline=None, changed=True)
                problem = str(answer.get("msg"))
                if answer.get("kind") == "not-active" or answer.get("script_state") == "rolled-back":
                    return _failed(
                        result, "the host rolled the change back, as nothing confirmed it in time", changed=False
                    )
                if answer.get("rc") in (2, 3, 4, 5, 6):
                    return self._undo(result, undo, problem)
            time.sleep(_PAUSE_SECONDS)
        return _failed(
            result,
            f"no new connection to the host came about since the change ({problem}). The host rolls the change back by "
            "itself at its deadline; that could not be seen from here",
            changed=True,
        )

    def _undo(self, result, undo, problem):
        """A change that must not be confirmed is not left to its deadline."""
        try:
            answer = undo()
        except AnsibleConnectionFailure as error:
            answer = {"failed": True, "msg": describe_connection_failure(error)}
        if answer.get("failed"):
            return _failed(
                result, "not confirmed: {}; not rolled back: {}".format(problem, answer.get("msg")), changed=True
            )
        return _failed(result, f"not confirmed, and rolled back: {problem}", changed=False)


def _failed(result, message, changed):
    kept = {key: value for key, value in result.items() if key != "diff" or changed}
    return dict(kept, failed=True, changed=changed, msg=message)


def _is_name(text):
    return text.replace("-", "").isalnum()
