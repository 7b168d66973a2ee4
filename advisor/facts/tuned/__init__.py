"""TuneD's profiles, read as TuneD itself reads them (its loader, merger and plugins, up to 2.28) and never executed."""
