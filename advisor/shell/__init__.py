"""POSIX sh as data: quoting, templates, and the rollback script of a plan."""
