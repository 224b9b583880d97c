"""Tools: functions of the user's with a declared effect, and how they are called."""
