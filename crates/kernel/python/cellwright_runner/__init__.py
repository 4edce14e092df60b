"""Cellwright's built-in Python kernel: runs cells for a host over a private channel.

The modules that `main` imports are the core. They import few other modules, because they run
between process start and `hello`. All other modules are loaded on first use, through `lazy.load`.
"""

PROTOCOL = 1
