"""Flushes the stdio buffers of C code, so that printf text of a cell precedes its `done`."""

import ctypes

try:
    _fflush = ctypes.PyDLL(None).fflush
    _fflush.argtypes = [ctypes.c_void_p]
except (OSError, AttributeError, TypeError):
    _fflush = None


def flush():
    """fflush(NULL)"""
    if _fflush is not None:
        _fflush(None)
