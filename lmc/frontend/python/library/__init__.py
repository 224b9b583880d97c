"""The standard library as a table: what each function that programs use does with its arguments, and what it gives."""
