"""``advisor.host.facts`` on the controller: takes the host's program, or a capture and the controller's."""

from __future__ import annotations

from ansible_collections.advisor.host.plugins.module_utils.program import FACTS_ARGUMENTS, scan_facts
from ansible_collections.advisor.host.plugins.plugin_utils.hosts import HostAction


class ActionModule(HostAction):
    """See the module."""

    ARGUMENTS = FACTS_ARGUMENTS

    def act_on_host(self, params, task_vars):
        return self._execute_module(
            module_name="advisor.host.facts", module_args=params, task_vars=task_vars, wrap_async=False
        )

    def act_from_controller(self, params, task_vars):
        with self.capture(task_vars) as place:
            words = ["scan", "--snapshot", place.capture]
            words += ["--workload", params["workload"]] if params["workload"] else []
            return dict(scan_facts(place.ask(words), params["gather"]), changed=False)
