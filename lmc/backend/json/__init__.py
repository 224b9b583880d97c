"""Plans as versioned JSON."""
