# Runs inside an IPython kernel on another machine, in a separate namespace with `sources`, the files of
# the package cellwright_runner by their names, and `directory`, a name that stands for their directory.
# Makes the package importable without files.
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.util import spec_from_loader

PACKAGE = "cellwright_runner"


class SourceFinder(MetaPathFinder, Loader):
    def __init__(self, sources, directory):
        self.sources = sources
        self.directory = directory

    def find_spec(self, name, path=None, target=None):
        if name != PACKAGE and not name.startswith(PACKAGE + "."):
            return None
        stem = name.replace(".", "/")
        for file, is_package in ((stem + "/__init__.py", True), (stem + ".py", False)):
            if file in self.sources:
                origin = self.directory + "/" + file
                spec = spec_from_loader(name, self, origin=origin, is_package=is_package)
                spec.has_location = True
                return spec
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        origin = module.__spec__.origin
        source = self.sources[origin[len(self.directory) + 1 :]]
        exec(compile(source, origin, "exec", dont_inherit=True), module.__dict__)

    def get_source(self, name):
        spec = self.find_spec(name)
        return None if spec is None else self.sources[spec.origin[len(self.directory) + 1 :]]


def load():
    loaded = sys.modules.get(PACKAGE + ".ipykernel_support")
    if loaded is not None and loaded.DIRECTORY == directory:  # noqa: F821
        return
    if loaded is not None:
        loaded.uninstall()  # another version of this package
    for name in list(sys.modules):
        if name == PACKAGE or name.startswith(PACKAGE + "."):
            del sys.modules[name]
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if type(finder).__name__ != SourceFinder.__name__
    ]
    sys.meta_path.insert(0, SourceFinder(sources, directory))  # noqa: F821
    __import__(PACKAGE + ".ipykernel_support")


load()
