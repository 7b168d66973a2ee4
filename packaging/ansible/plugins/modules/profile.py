#!/usr/bin/python
# Copyright: The advisor project
# SPDX-License-Identifier: Apache-2.0
"""Profiles of advisor as desired state."""

from __future__ import annotations

DOCUMENTATION = r"""
module: profile
short_description: Applies profiles of advisor as one transaction, and rolls them back
version_added: 1.0.0
description:
  - Brings the values of profiles about, live and over a reboot, as one transaction of C(advisor). All of them
    are set and read back, or none is.
  - A second run changes nothing. Under C(--check) nothing is changed, and RV(changes) is what would be;
    C(--diff) shows values and files.
  - A change that could cut the host off waits for confirmation. The action confirms it through a new
    connection. If none comes about in time, the host rolls the change back by itself and the task fails.
  - An active transaction that has one of the profiles is replaced where the plan differs. What it alone holds
    is restored.
options:
  name:
    description:
      - Profiles by name or by file of the host, and single values such as V(sysctl:vm.swappiness=10).
      - They are one plan and one transaction.
    type: list
    elements: str
    required: true
    aliases: [names, profiles]
  state:
    description:
      - V(applied) sets what differs.
      - V(confirmed) confirms what an earlier task with O(confirm=false) left waiting.
      - V(rolled_back) restores the values and files from before, as they were when the profiles were applied.
    type: str
    choices: [applied, confirmed, rolled_back]
    default: applied
  parameters:
    description:
      - Parameters of the profiles, as after C(--set). A list is written with commas.
    type: dict
    default: {}
  runtime_only:
    description:
      - Change live values only. A reboot reverts them.
    type: bool
    default: false
  peers:
    description:
      - Addresses that must answer before and after a change of links.
    type: list
    elements: str
    default: []
  confirm:
    description:
      - Confirm a change of links through a new connection, in this task. With V(false) a later task with
        O(state=confirmed) has to do it in time.
    type: bool
    default: true
  confirm_within:
    description:
      - Seconds until a change of links is rolled back unless it is confirmed. V(0) confirms it at once, with no
        new connection.
    type: int
    default: 60
  force:
    description:
      - With O(state=rolled_back), restore values that were modified externally, too.
    type: bool
    default: false
  via:
    description:
      - Which program plans. V(host) is the one that is installed on the host.
      - V(controller) is the one on the controller. It plans from a capture of the host, and a shell script
        carries the plan out there. Nothing has to be installed on the host, not even Python.
      - V(auto) takes the host's where it has one, and the controller's otherwise.
    type: str
    choices: [auto, host, controller]
    default: auto
  executable:
    description:
      - The program on the host. It is looked for on the search path, in F(/usr/local/bin) and in
        F(/opt/advisor/bin) otherwise.
    type: path
  controller_executable:
    description:
      - The program on the controller. It is looked for next to the Python that runs Ansible and on the search
        path otherwise.
    type: path
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.flow
attributes:
  action:
    support: full
  async:
    support: none
  bypass_host_loop:
    support: none
  check_mode:
    support: full
  diff_mode:
    support: full
  platform:
    support: full
    platforms: linux
notes:
  - Needs root on the host (C(become)), except under C(--check).
  - The contents of files that others may not read are left out of C(--diff).
  - Over C(ansible_connection=local) from a login over ssh, a change of links made over that login cannot be
    confirmed from it. Use O(confirm_within=0).
  - With O(via=controller), a value that a former run set and this plan no longer names stays until
    O(state=rolled_back), and O(state=confirmed) is not possible.
author:
  - The advisor project (@advisor)
"""

EXAMPLES = r"""
- name: Jumbo frames on the storage links
  advisor.host.profile:
    name: jumbo-frames
    parameters:
      links: [eth1, eth2]
    peers: [192.0.2.7]
  become: true

- name: One value
  advisor.host.profile:
    name: sysctl:vm.swappiness=10
  become: true

- name: Apply, and leave it to a later task to confirm
  advisor.host.profile:
    name: jumbo-frames
    confirm: false
    confirm_within: 300
  become: true

- name: See whether the storage answers
  ansible.builtin.wait_for:
    host: 192.0.2.7
    port: 3260
    timeout: 30

- name: Confirm
  advisor.host.profile:
    name: jumbo-frames
    state: confirmed
  become: true

- name: Restore what was there before
  advisor.host.profile:
    name: jumbo-frames
    state: rolled_back
  become: true
"""

RETURN = r"""
state:
  description:
    - What became of it, V(unchanged), V(planned) (under C(--check)), V(awaiting-confirmation), V(applied) or
      V(rolled-back).
  returned: success
  type: str
  sample: applied
transaction:
  description: The id of the transaction on the host.
  returned: where there is one
  type: str
  sample: "0004"
changes:
  description: Each value that was changed, or would be.
  returned: success
  type: list
  elements: dict
  sample: [{"tunable": "link:eth1:mtu", "before": "1500", "after": "9000", "takes_effect": "now"}]
skipped_values:
  description: Each value that is not changed, with the reason.
  returned: O(state=applied)
  type: list
  elements: dict
  sample: [{"tunable": "link:eth2:mtu", "before": "9000", "wanted": "9000", "reason": "already set"}]
fingerprint:
  description: The fingerprint of the plan, as C(advisor plan) prints it.
  returned: O(state=applied)
  type: str
  sample: 9af7cd41e727c94e52432a68057c667859349fac665dffd0ba83dc9d0a8ab81f
replaced:
  description: The ids of the transactions that were replaced.
  returned: O(state=applied)
  type: list
  elements: str
  sample: ["0003"]
deadline:
  description: When the change is rolled back unless it is confirmed. Null where nothing waits.
  returned: O(state=applied)
  type: str
  sample: "2026-11-24T04:06:40Z"
via:
  description: Which program planned, V(host) or V(controller).
  returned: success
  type: str
  sample: host
rc:
  description:
    - The exit code of C(advisor) where it failed. V(2) is a wrong call, V(3) a refusal (nothing was changed),
      V(4) a failure after which everything is rolled back, V(5) one after which something could not be
      restored, V(6) missing permission.
  returned: failure
  type: int
  sample: 3
hint:
  description: What to do.
  returned: failure, where there is one
  type: str
  sample: advisor plan lists every item
not_restored:
  description: With RV(rc=5), each item that could not be restored, with the command to run by hand.
  returned: failure
  type: list
  elements: dict
  sample: [{"what": "link:eth1:mtu", "by_hand": "ip link set dev eth1 mtu 1500"}]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.advisor.host.plugins.module_utils.module import Program
from ansible_collections.advisor.host.plugins.module_utils.program import (
    PROFILE_ARGUMENTS,
    AdvisorError,
    active_transactions,
    is_pending,
    mixed_refusal,
    plan_diff,
    plan_words,
    refusal,
    short_changes,
    short_skipped,
    stale_values,
    value_diff,
    would_change,
)


def apply_profiles(program, params, check_mode):
    words = plan_words(params)
    plan = program.ask(["apply", *words, "--dry-run"])
    if plan["cannot_apply"]:
        raise refusal(plan)
    active = []
    try:
        active = active_transactions(program.ask(["status"]), plan["profiles"])
    except AdvisorError as error:
        if not check_mode or error.fields.get("rc") != 6:
            raise
        program.warn("Without root it cannot be seen which transactions are active: what would be replaced is unknown.")
    stale = stale_values(plan, active)
    result = {
        "state": "unchanged",
        "transaction": active[0]["id"] if active else None,
        "changes": short_changes(plan),
        "skipped_values": short_skipped(plan),
        "fingerprint": plan["fingerprint"],
        "replaced": [],
        "deadline": None,
        "changed": False,
    }
    if not would_change(plan) and not stale:
        # One that waits is what a task left behind that was cut off: it can be confirmed still.
        if active and is_pending(active[0]):
            result.update(state="awaiting-confirmation", deadline=active[0]["deadline"])
        return result
    result["diff"] = plan_diff(plan, stale)
    result["replaced"] = [one["id"] for one in active]
    if check_mode:
        return dict(result, changed=True, state="planned")
    for peer in params["peers"]:
        words += ["--peer", peer]
    for one in active:
        words += ["--instead-of", one["id"]]
    done = program.ask(["apply", *words, "--yes", "--confirm-within", str(params["confirm_within"])])
    changed = done["state"] in ("applied", "awaiting-confirmation") or bool(done["taken_out"])
    return dict(
        result,
        changed=changed,
        state=done["state"],
        transaction=done["id"],
        changes=short_changes(done),
        fingerprint=done["fingerprint"],
        deadline=done["deadline"],
    )


def confirm_profiles(program, params, check_mode):
    profiles = read_profiles(program, params)
    active = active_transactions(program.ask(["status"]), profiles)
    if not active:
        raise AdvisorError(
            "no transaction of {} is active: nothing waits for confirmation (it is rolled back at its deadline)".format(
                ", ".join(profiles)
            ),
            rc=3,
            kind="not-active",
        )
    result = {"transaction": active[0]["id"], "changes": [], "changed": False, "state": "applied"}
    if not is_pending(active[0]):
        return result
    result["changed"] = True
    if check_mode:
        return dict(result, state="planned")
    done = program.ask(["confirm", active[0]["id"]])
    return dict(result, state=done["state"])


def roll_profiles_back(program, params, check_mode):
    profiles = read_profiles(program, params)
    active = active_transactions(program.ask(["status"]), profiles)
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
    if check_mode or not active:
        return dict(result, state="planned" if active else "unchanged")
    begun = False
    for one in active:
        try:
            done = program.ask(["rollback", one["id"]] + (["--force"] if params["force"] else []))
        except AdvisorError as error:
            error.fields["changed"] = begun or bool(error.fields.get("changed"))
            raise
        begun = True
        if not done["ok"]:
            raise not_restored(done)
    return dict(result, state="rolled-back")


def not_restored(done):
    items = [
        {"what": item["what"], "by_hand": item["by_hand"], "detail": item["detail"]}
        for one in done["transactions"]
        for item in one["outcomes"]
        if item["state"] in ("kept", "failed")
    ]
    words = "; ".join("{}: {}".format(one["what"], one["detail"]) for one in items)
    return AdvisorError("partially rolled back: " + words, rc=5, kind="not-restored", not_restored=items, changed=True)


def read_profiles(program, params):
    """The names under which transactions know the profiles: a file and a single value have one of their own."""
    if all(name.replace("-", "").isalnum() for name in params["name"]):
        return params["name"]
    return program.ask(["plan", *plan_words(params)])["profiles"]


def main():
    module = AnsibleModule(argument_spec=PROFILE_ARGUMENTS, supports_check_mode=True)
    act = {"applied": apply_profiles, "confirmed": confirm_profiles, "rolled_back": roll_profiles_back}
    try:
        result = act[module.params["state"]](Program(module), module.params, module.check_mode)
        module.exit_json(via="host", **result)
    except AdvisorError as error:
        module.fail_json(msg=str(error), **error.fields)


if __name__ == "__main__":
    main()
