"""Gives linecache (and with it inspect, warnings, pdb) the source of cells."""

from .state import STATE


def patch(linecache):
    """Register the cells so far; called when linecache is imported. `cell` adds later cells."""
    for name, code in STATE.cell_sources.items():
        linecache.cache[name] = (lambda code=code: code,)


def patch_line_profiler(module):
    """Make %lprun show the lines of cells, which have no files; called when line_profiler is
    imported."""
    original = getattr(module, "is_ipython_kernel_cell", None)
    if original is not None:
        module.is_ipython_kernel_cell = lambda name: name in STATE.cell_sources or original(name)
