"""Numbers of a schema: bounds and multiples, digit by digit."""
