"""Programs with conditions that only a run decides, by what they try to get wrong."""
