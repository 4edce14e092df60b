# Runs inside an IPython kernel, in a separate namespace, through request.txt. Loads the package
# cellwright_runner from `directory` unless that copy is loaded already, and calls the function `call`
# of its module `ipykernel_support`.
import sys


def load():
    name = "cellwright_runner"
    loaded = sys.modules.get(name + ".ipykernel_support")
    if loaded is not None and loaded.DIRECTORY == directory:  # noqa: F821
        return loaded
    if sys.version_info < (3, 8):
        raise RuntimeError("Python 3.8 or newer is needed; this is %s" % sys.version.split()[0])
    if loaded is not None:
        loaded.uninstall()  # another version of this package
    for module in list(sys.modules):
        if module == name or module.startswith(name + "."):
            del sys.modules[module]
    # The package is loaded by path: sys.path stays unchanged, and files of the same name elsewhere
    # have no effect.
    from importlib.util import module_from_spec, spec_from_file_location

    path = directory + "/" + name  # noqa: F821
    spec = spec_from_file_location(name, path + "/__init__.py", submodule_search_locations=[path])
    no_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = False
    sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(sys.modules[name])
        __import__(name + ".ipykernel_support")
        return sys.modules[name + ".ipykernel_support"]
    except BaseException:
        sys.modules.pop(name, None)
        raise
    finally:
        sys.dont_write_bytecode = no_bytecode


def run():
    support = load()
    if call == "install" or not support.is_installed():  # noqa: F821
        support.install(options)  # noqa: F821
    if call != "install":  # noqa: F821
        getattr(support, call)(*arguments)  # noqa: F821


run()
