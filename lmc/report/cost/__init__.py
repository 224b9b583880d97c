"""The cost of programs as data, tables and reports."""
