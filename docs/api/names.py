"""What can be named, as completion offers it: with the descriptions of a profile's parameters."""

from advisor.operations import names

for profile in names.list_profile_names():
    print(profile, dict(names.describe_parameters(profile)))
print(*names.list_export_forms(), *names.list_severities())
