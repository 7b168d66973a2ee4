"""The same over many hosts, with Ansible as the engine: capture, compare, plan, apply in waves, verify, put back."""
