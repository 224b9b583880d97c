"""Control flow of a capture: exits and outcomes, conditions, joins, loops and protected regions."""
