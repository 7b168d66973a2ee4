"""Rules of InfoScale, InterSystems IRIS and BeeGFS."""
