"""From a variant's source to a Python module, and what the assembler says of its kernels."""
