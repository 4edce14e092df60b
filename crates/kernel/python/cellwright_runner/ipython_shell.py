"""The object that get_ipython() returns: the part of IPython's shell that notebooks and libraries
use.

Libraries look at its class (`ZMQInteractiveShell` of a module `ipykernel.…`), at `kernel` and at
`IPKernelApp` in `config` to find out whether rich output is shown, which is the case here. The modules
of ipykernel are not loaded: those would announce widgets, which need a page (tqdm.auto draws text bars
without them).
"""

import os
import sys

from . import cell, lazy
from .events import Events, ExecutionInfo, ExecutionResult
from .formatters import DisplayFormatter, DisplayPublisher
from .state import STATE


class Config(dict):
    """`config`: a mapping whose missing sections are empty."""

    # Versions of tqdm before 4.68 take the section of a Jupyter kernel as the sign of a page.
    _TEXT_BARS = ("tqdm.autonotebook", "tqdm.auto")

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self.setdefault(name, Config())

    def __setattr__(self, name, value):
        self[name] = value

    def __contains__(self, name):
        if name == "IPKernelApp" and sys._getframe(1).f_globals.get("__name__") in self._TEXT_BARS:
            return False
        return dict.__contains__(self, name) and self[name] != {}


class MagicsManager:
    """get_ipython().magics_manager: lists and registers magics."""

    def __init__(self, shell):
        self.shell = shell

    @property
    def magics(self):
        return lazy.load("magics").list_magics(self.shell)

    def lsmagic(self):
        return self.magics

    def register_function(self, function, magic_kind="line", magic_name=None):
        self.shell.register_magic_function(function, magic_kind, magic_name)

    def register(self, *magics):
        self.shell.register_magics(*magics)


class ZMQInteractiveShell:
    """The shell object; one instance per session."""

    __module__ = "ipykernel.zmqshell"

    def __init__(self):
        self.events = Events()
        self.display_formatter = DisplayFormatter()
        self.display_pub = DisplayPublisher()
        self.has_formatters = False
        self.config = Config(IPKernelApp=Config(connection_file=""))
        self.input_transformers_cleanup = []
        self.input_transformers_post = []
        self.ast_transformers = []
        self.configurables = []
        self.automagic = True
        self.autocall = 0
        self.colors = "NoColor"
        self.xmode = "Plain"
        self.ast_node_interactivity = "last_expr"
        self.display_page = False
        self.db = {}
        self.custom_magics = {"line": {}, "cell": {}}
        self.magics_manager = MagicsManager(self)
        self.custom_exceptions = ()
        self._exception_handler = None
        self.parent = None
        self.ipython_shell = None  # IPython's own shell, once a magic needed it

    # Facts

    @property
    def user_ns(self):
        return STATE.ns

    @property
    def user_global_ns(self):
        return STATE.ns

    @property
    def user_module(self):
        return sys.modules["__main__"]

    @property
    def user_ns_hidden(self):
        return set(lazy.load("magics.variables").HIDDEN)

    @property
    def execution_count(self):
        return STATE.cell_count

    @property
    def kernel(self):
        return lazy.load("kernel_object").Kernel(self)

    @property
    def parent_header(self):
        return {}

    def get_parent(self):
        """Return the request of the cell, which is no Jupyter message: an empty dict."""
        return {}

    def set_parent(self, parent):
        """Ignored: output belongs to the cell that creates it."""

    def has_trait(self, name):
        """Return whether this is an option of the shell."""
        return not name.startswith("_") and name in self.__dict__

    @property
    def all_ns_refs(self):
        return [STATE.ns, {}]

    @property
    def home_dir(self):
        return os.path.expanduser("~")

    @classmethod
    def instance(cls, *args, **kwargs):
        return STATE.shell

    @classmethod
    def initialized(cls):
        return True

    def get_ipython(self):
        return self

    def display_by_formatter(self, obj):
        """Call the _ipython_display_ function that is registered for the object's type. Returns
        whether there is one."""
        function = self.display_formatter.ipython_display_formatter.lookup_quiet(obj)
        if function is None:
            return False
        function(obj)
        return True

    # Magics

    def run_line_magic(self, magic_name, line="", _stack_depth=1):
        """%name line"""
        return lazy.load("magics").run_line(self, magic_name, line)

    def run_cell_magic(self, magic_name, line, cell):
        """%%name line, with the text below"""
        return lazy.load("magics").run_cell(self, magic_name, line, cell)

    def magic(self, text):
        """%name line, as one text (old style)"""
        name, _, line = text.partition(" ")
        return self.run_line_magic(name.lstrip("%"), line)

    def find_magic(self, magic_name, magic_kind="line"):
        """Return the function of a magic, or None."""
        return lazy.load("magics").find(self, magic_name, magic_kind)

    find_line_magic = find_magic

    def find_cell_magic(self, magic_name):
        return self.find_magic(magic_name, "cell")

    def register_magic_function(self, func, magic_kind="line", magic_name=None):
        """Make a function a magic."""
        name = magic_name or func.__name__
        for kind in ("line", "cell") if magic_kind == "line_cell" else (magic_kind,):
            self.custom_magics[kind][name] = func

    def register_magics(self, *magics):
        """Register the magics of IPython-style classes or instances."""
        for entry in magics:
            instance = entry(self) if isinstance(entry, type) else entry
            for kind, table in (getattr(instance, "magics", None) or {}).items():
                for name, function in table.items():
                    if isinstance(function, str):
                        function = getattr(instance, function)
                    self.custom_magics[kind][name] = function

    @property
    def alias_manager(self):
        return lazy.load("magics.aliases").AliasManager(self)

    def register_alias(self, name, command):
        """A line magic that runs a shell command."""
        self.alias_manager.define_alias(name, command)

    # Shell and code

    def system(self, command):
        """!command"""
        return lazy.load("shell").system(command)

    system_raw = system_piped = system

    def getoutput(self, command, split=True, depth=0):
        """x = !command"""
        return lazy.load("shell").getoutput(command, split)

    def var_expand(self, text, depth=0, formatter=None):
        return lazy.load("shell").expand(text)

    def transform_cell(self, raw_cell):
        return cell.transform(raw_cell)

    def find_user_code(self, target, raw=True, py_only=False, search_ns=False, **options):
        """Return the text that a range of the history, a file, an URL or a name stands for."""
        return lazy.load("magics.code").find_user_code(target, raw, search_ns)

    def run_cell(
        self, raw_cell, store_history=False, silent=False, shell_futures=True, cell_id=None
    ):
        """Run text as a cell inside the current cell; errors are shown and stored in the result."""
        info = ExecutionInfo(raw_cell, store_history, silent)
        result = ExecutionResult(info)
        self.events.trigger("pre_execute")
        if not silent:
            self.events.trigger("pre_run_cell", info)
        try:
            result.result = self.run_body(raw_cell, show=not silent)
        except KeyboardInterrupt:
            raise
        except Exception as error:
            result.error_in_exec = error
            self.showtraceback((type(error), error, error.__traceback__))
        self.events.trigger("post_execute")
        if not silent:
            self.events.trigger("post_run_cell", result)
        return result

    def run_body(self, text, show=True, lines_above=0, value=False, local_names=None):
        """Run text like a cell; exceptions propagate. With `value`, the last value is returned but
        not shown. `local_names` are those of a function that runs a magic."""
        code = cell.transform(text)
        name = (
            "%s body" % cell.cell_name(None, STATE.cell_count)
            if not lines_above
            else cell.cell_name(None, STATE.cell_count)
        )
        parts, shown = cell.compile_cell("\n" * lines_above + code, name)
        if not parts:
            return None
        result = cell.run_parts(parts, shown, local_names)
        if shown and result is not None and show and not value:
            cell.show_result(result)
        return result if shown else None

    async def run_cell_async(self, raw_cell, **options):
        """Like run_cell, for callers that await it."""
        return self.run_cell(raw_cell)

    def ev(self, expression):
        """Return the value of an expression."""
        return eval(expression, STATE.ns)

    def ex(self, code):
        """Execute statements."""
        exec(code, STATE.ns)

    def push(self, variables, interactive=True):
        """Add names to the user's namespace."""
        if isinstance(variables, dict):
            STATE.ns.update(variables)
            return
        if isinstance(variables, str):
            variables = variables.split()
        frame = sys._getframe(1)
        for name in variables:
            STATE.ns[name] = eval(name, frame.f_globals, frame.f_locals)

    def drop_by_id(self, variables):
        """Remove names that still refer to the same objects."""
        for name, value in variables.items():
            if name in STATE.ns and STATE.ns[name] is value:
                del STATE.ns[name]

    def reset(self, new_session=True, aggressive=False):
        lazy.load("magics.variables").reset_names()

    # Errors

    def showtraceback(self, exc_tuple=None, *args, **kwargs):
        """Write the traceback of an exception to stderr; without one, that of the last error."""
        error = (exc_tuple or sys.exc_info())[1]
        if error is None:
            error = getattr(sys, "last_value", None)
        if error is None:
            sys.stderr.write("No traceback available to show.\n")
        else:
            lines = lazy.load("tracebacks").describe(error)[2]
            sys.stderr.write("\n".join(lines) + "\n")

    def showsyntaxerror(self, *args, **kwargs):
        self.showtraceback()

    def set_custom_exc(self, exc_tuple, handler):
        """Call `handler(shell, class, exception, traceback, tb_offset=None)` when a cell raises one
        of the exceptions. The lines that it returns replace the traceback."""
        if not isinstance(exc_tuple, tuple):
            raise TypeError("The custom exceptions must be given as a tuple.")
        self.custom_exceptions, self._exception_handler = exc_tuple, handler

    def handle_custom_exception(self, error):
        """Return the traceback lines of the user's handler, or None if there are none."""
        if self._exception_handler is None or not isinstance(error, self.custom_exceptions):
            return None
        lines = self._exception_handler(
            self, type(error), error, error.__traceback__, tb_offset=None
        )
        lines = [lines] if isinstance(lines, str) else lines
        if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
            return lines
        return ["%s: %s" % (type(error).__name__, error)]

    def excepthook(self, kind, value, traceback):
        self.showtraceback((kind, value, traceback))

    # Accepted because notebooks call them; without effect

    def set_next_input(self, text, replace=False):
        """Print the text; there is no input box to fill."""
        print(text)

    def enable_gui(self, gui=None):
        pass

    def enable_matplotlib(self, gui=None):
        lazy.load("magics.plotting").matplotlib(self, gui or "")
        return "inline", "inline"

    def enable_pylab(self, gui=None, import_all=True, welcome_message=False):
        return "inline", "inline", set()

    def show_usage(self):
        lazy.load("magics.help").page(lazy.load("magics").USAGE)

    def ask_exit(self):
        """Without effect: the kernel ends with its session."""

    def observe(self, *args, **kwargs):
        pass

    def atexit_operations(self):
        pass

    @property
    def history_manager(self):
        return lazy.load("history").HistoryManager()

    @property
    def extension_manager(self):
        return lazy.load("magics.extensions").ExtensionManager(self)

    def __getattr__(self, name):
        # Rarely used parts (Completer …) exist once IPython's own shell exists.
        real = self.__dict__.get("ipython_shell")
        if real is not None and not name.startswith("__"):
            return getattr(real, name)
        raise AttributeError("%r object has no attribute %r" % (type(self).__name__, name))


def make():
    """Return the shell object of this session."""
    if STATE.shell is None:
        STATE.shell = ZMQInteractiveShell()
    return STATE.shell
