# The text that the host passes to `python -c`; argv: the folder of cellwright_runner, the channel
# fd. It stays in the common subset of Python 2 and 3, so that an old interpreter can say that it is
# old.
import sys


def _cellwright_boot():
    if sys.version_info < (3, 8):
        sys.stderr.write(
            "cellwright: Python 3.8 or newer is needed; this is %s (%s)\n"
            % (".".join([str(part) for part in sys.version_info[:3]]), sys.executable)
        )
        sys.exit(86)
    folder, fd = sys.argv[1], int(sys.argv[2])
    # The host sets it for us: from 3.13 on, `python -c` imports a module or two before it comes here,
    # and they must not come from the user's folder. Children of a cell must not have it.
    sys.modules["os"].environ.pop("PYTHONSAFEPATH", None)
    # The user's folder must not shadow what we import, and our .pyc must be kept.
    rest = [entry for entry in sys.path if entry]
    sys.path[:] = [folder] + rest
    no_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = False
    try:
        from cellwright_runner import main
    finally:
        sys.dont_write_bytecode = no_bytecode
        sys.path[:] = [""] + rest
    sys.argv[:] = [""]
    return main.start(folder, fd)


_cellwright_boot()
