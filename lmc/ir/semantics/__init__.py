"""What ops compute: the reference interpreter and the functions that it shares with the executor."""
