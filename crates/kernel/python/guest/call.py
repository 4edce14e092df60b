# Run inside a Python kernel that is not ours, in a namespace of its own, by request.txt: finds our
# package in `folder`, or brings it in, and calls the function `call` of its `guest`.
import sys


def load():
    name = "cellwright_runner"
    there = sys.modules.get(name + ".guest")
    if there is not None and there.FOLDER == folder:  # noqa: F821
        return there
    if sys.version_info < (3, 8):
        raise RuntimeError("Python 3.8 or newer is needed; this is %s" % sys.version.split()[0])
    if there is not None:
        there.leave()  # another version of ours
    for known in list(sys.modules):
        if known == name or known.startswith(name + "."):
            del sys.modules[known]
    # The package is loaded by its place: sys.path stays as it is, and other files of that name do
    # not matter.
    from importlib.util import module_from_spec, spec_from_file_location

    place = folder + "/" + name  # noqa: F821
    spec = spec_from_file_location(name, place + "/__init__.py", submodule_search_locations=[place])
    no_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = False
    sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(sys.modules[name])
        __import__(name + ".guest")
        return sys.modules[name + ".guest"]
    except BaseException:
        sys.modules.pop(name, None)
        raise
    finally:
        sys.dont_write_bytecode = no_bytecode


def run():
    guest = load()
    if call == "enter" or not guest.entered():  # noqa: F821
        guest.enter(options)  # noqa: F821
    if call != "enter":  # noqa: F821
        getattr(guest, call)(*arguments)  # noqa: F821


run()
