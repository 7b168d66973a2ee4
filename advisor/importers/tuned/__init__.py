"""Import of TuneD's profiles, as TuneD itself applies them (its plugins, up to 2.28); nothing is executed."""
