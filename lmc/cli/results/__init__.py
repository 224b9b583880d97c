"""Results of ``lmc run``: rows, failures and progress."""
