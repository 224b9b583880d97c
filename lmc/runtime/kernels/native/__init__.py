"""C code for the CPU, compiled on the user's machine at first use."""
