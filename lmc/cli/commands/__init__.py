"""The commands: one file each, with a function whose parameters are the options."""
