"""The protocol of engines, the toy engine, and what engines share."""
