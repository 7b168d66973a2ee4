"""Settings in a text that somebody pasted: an article, a configuration file, a script. Nothing of it is ever run."""
