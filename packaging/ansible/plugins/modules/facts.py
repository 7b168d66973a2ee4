#!/usr/bin/python
# Copyright: The advisor project
# SPDX-License-Identifier: Apache-2.0
"""Facts and findings of advisor scan."""

from __future__ import annotations

DOCUMENTATION = r"""
module: facts
short_description: What advisor scan reads and finds on a host
version_added: 1.0.0
description:
  - Returns the document of C(advisor scan --json) as the fact C(advisor), with findings, links, disks, arrays,
    NUMA nodes and CPUs.
  - Changes nothing. What could not be read is listed under C(unknown), with the reason.
options:
  gather:
    description:
      - The parts of the document to keep, such as V(findings) or V(links). All of it by default.
    type: list
    elements: str
    default: []
  workload:
    description:
      - What runs here, for rules that judge by intent, as after C(--workload).
    type: str
  via:
    description:
      - Which program scans. V(host) is the one that is installed on the host.
      - V(controller) is the one on the controller, which reads a capture that a shell script takes on the host.
        Nothing is needed there.
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
    support: none
  platform:
    support: full
    platforms: linux
notes:
  - As root more is read. Without root, what root would add is listed under C(unknown).
author:
  - The advisor project (@advisor)
"""

EXAMPLES = r"""
- name: Scan
  advisor.host.facts:

- name: Stop where something is critical
  ansible.builtin.assert:
    that: ansible_facts.advisor.findings | selectattr('severity', 'equalto', 'critical') | list | length == 0

- name: Keep the findings alone
  advisor.host.facts:
    gather: [findings, unknown]
"""

RETURN = r"""
ansible_facts:
  description: What was read.
  returned: success
  type: dict
  contains:
    advisor:
      description: The document of C(advisor scan --json), whose schema is C(advisor.scan/1).
      returned: success
      type: dict
      sample: {"schema": "advisor.scan/1", "findings": [], "unknown": []}
via:
  description: Which program scanned, V(host) or V(controller).
  returned: success
  type: str
  sample: host
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.advisor.host.plugins.module_utils.module import Program
from ansible_collections.advisor.host.plugins.module_utils.program import FACTS_ARGUMENTS, AdvisorError, scan_facts


def main():
    module = AnsibleModule(argument_spec=FACTS_ARGUMENTS, supports_check_mode=True)
    try:
        words = ["scan"] + (["--workload", module.params["workload"]] if module.params["workload"] else [])
        module.exit_json(changed=False, via="host", **scan_facts(Program(module).ask(words), module.params["gather"]))
    except AdvisorError as error:
        module.fail_json(msg=str(error), **error.fields)


if __name__ == "__main__":
    main()
