"""InfoScale, InterSystems IRIS and BeeGFS."""
