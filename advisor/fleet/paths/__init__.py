"""The paths between the nodes of a fleet: each asks the others."""
