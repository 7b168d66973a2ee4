"""The program advisor as a module runs it on its host."""

from __future__ import annotations

from ansible_collections.advisor.host.plugins.module_utils.program import (
    DIRECTORIES,
    HOW_TO_INSTALL,
    AdvisorError,
    parse_answer,
)


class Program:
    """The one that is named, or the first that is found."""

    def __init__(self, module):
        self._module = module
        self.warn = module.warn
        named = module.params["executable"]
        self._path = named or module.get_bin_path("advisor", opt_dirs=list(DIRECTORIES))
        if not self._path:
            raise AdvisorError("advisor is not installed on this host. " + HOW_TO_INSTALL, kind="not-installed")

    def ask(self, words):
        """The document that a command prints. Raises AdvisorError."""
        language = {"LC_ALL": "C.UTF-8", "LANGUAGE": "", "NO_COLOR": "1"}
        try:
            code, output, noise = self._module.run_command(
                [self._path, *list(words), "--json"], environ_update=language, data="", handle_exceptions=False
            )
        except OSError as error:
            raise AdvisorError(f"{self._path}: {error.strerror}", kind="not-installed") from error
        return parse_answer(code, output, noise)
