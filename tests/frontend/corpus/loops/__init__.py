"""Programs with loops whose number of rounds only a run decides, by what they try to get wrong."""
