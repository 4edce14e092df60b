# The program text that the host passes to `python -c`. argv: the directory that contains
# cellwright_runner, and the channel fd. The text stays in the common subset of Python 2 and 3, so
# that an interpreter that is too old reports its version instead of a syntax error.
import sys


def _cellwright_boot():
    if sys.version_info < (3, 8):
        sys.stderr.write(
            "cellwright: Python 3.8 or newer is needed; this is %s (%s)\n"
            % (".".join([str(part) for part in sys.version_info[:3]]), sys.executable)
        )
        sys.exit(86)
    directory, fd = sys.argv[1], int(sys.argv[2])
    # The host sets this variable because from 3.13 on `python -c` imports modules before this text
    # runs, and those must not come from the user's directory. Children of a cell must not inherit it.
    sys.modules["os"].environ.pop("PYTHONSAFEPATH", None)
    # The user's directory must not shadow the runner's imports, and the runner's .pyc must be written.
    rest = [entry for entry in sys.path if entry]
    sys.path[:] = [directory] + rest
    no_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = False
    try:
        from cellwright_runner import main
    finally:
        sys.dont_write_bytecode = no_bytecode
        sys.path[:] = [""] + rest
    sys.argv[:] = [""]
    return main.start(directory, fd)


_cellwright_boot()
