"""The command line: flags, the config of all settings, and the body of the main binary."""
