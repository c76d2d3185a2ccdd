"""The engine on Linux: pure rooms that know the kernel's formats, and the processes that use them."""
