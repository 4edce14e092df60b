"""Temporary files and directories that other users can neither read nor replace.

A directory is used if it and all directories above it belong to this user or to the system, and are
sticky if others can write to them. The rules are those of the host (`private` in the crate stdext).
"""

import os
import stat
import tempfile


def unnamed_file():
    """Return a file without a name. Other users cannot replace it in any directory."""
    return tempfile.TemporaryFile(dir=next(_directories()))


def private_directory(prefix):
    """Create a directory with a random name, for this user alone."""
    for path in _directories():
        resolved = os.path.realpath(path)
        if _is_safe(resolved):
            return tempfile.mkdtemp(prefix=prefix, dir=resolved)


def _directories():
    """Yield the writable directories for temporary files; an error follows the last one."""
    for path in (os.environ.get("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"):
        if path and os.access(path, os.W_OK | os.X_OK):
            yield path
    raise OSError(
        "there is no directory for temporary files; set TMPDIR to one that belongs to you"
    )


def _is_safe(path):
    users = _trusted_users()
    while True:
        info = os.lstat(path)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid not in users:
            return False
        # A group with the number of the owner is the owner's own.
        others = stat.S_IWOTH if info.st_gid == info.st_uid else stat.S_IWOTH | stat.S_IWGRP
        if info.st_mode & others and not info.st_mode & stat.S_ISVTX:
            return False
        parent = os.path.dirname(path)
        if parent == path:
            return True
        path = parent


def _trusted_users():
    users = {0, os.geteuid()}
    try:
        with open("/proc/self/uid_map") as file:
            maps_every_user = ["0", "0", "4294967295"] in [line.split() for line in file]
        if not maps_every_user:
            # In a user namespace without root, the system's directories have this owner.
            with open("/proc/sys/kernel/overflowuid") as file:
                users.add(int(file.read()))
    except (OSError, ValueError):
        pass
    return users
