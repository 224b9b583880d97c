"""Running a Plan: the executor, and engines in the packages below (see README.md)."""
