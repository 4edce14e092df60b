"""Cellwright's built-in Python kernel: runs cells for a host over a private channel.

The modules that `main` imports are the core and import next to nothing, because the time from
process start to `hello` counts. Everything else is loaded when first needed, through `lazy.load`.
"""

PROTOCOL = 1
