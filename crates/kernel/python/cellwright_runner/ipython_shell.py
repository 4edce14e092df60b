"""What get_ipython() returns: enough of IPython's shell for notebooks and for libraries that ask.

The class is called ZMQInteractiveShell because pandas, rich, huggingface and others look at the
name to find out whether rich output will be shown; here it is. There is no `.kernel` and no
`IPKernelApp` in `config` on purpose: those say that comms, widgets and a running event loop exist,
and here they do not (tqdm then draws text bars, dask starts its own loop).
"""

import os
import sys

from . import cell, lazy
from .events import Events, Info, Result
from .formatters import DisplayFormatter, DisplayPublisher
from .state import S


class Config(dict):
    """`config`: a mapping whose missing sections are empty."""

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self.setdefault(name, Config())

    def __setattr__(self, name, value):
        self[name] = value

    def __contains__(self, name):
        return dict.__contains__(self, name) and self[name] != {}


class MagicsManager:
    """get_ipython().magics_manager: a read-only view for those who look."""

    def __init__(self, shell):
        self.shell = shell

    @property
    def magics(self):
        return lazy.load("magics").known(self.shell)

    def lsmagic(self):
        return self.magics

    def register_function(self, function, magic_kind="line", magic_name=None):
        self.shell.register_magic_function(function, magic_kind, magic_name)

    def register(self, *magics):
        self.shell.register_magics(*magics)


class ZMQInteractiveShell:
    """The shell object; one instance per session."""

    def __init__(self):
        self.events = Events()
        self.display_formatter = DisplayFormatter()
        self.display_pub = DisplayPublisher()
        self.has_formatters = False
        self.config = Config()
        self.input_transformers_cleanup = []
        self.input_transformers_post = []
        self.ast_transformers = []
        self.configurables = []
        self.autocall = 0
        self.colors = "NoColor"
        self.xmode = "Plain"
        self.ast_node_interactivity = "last_expr"
        self.display_page = False
        self.db = {}
        self.custom_magics = {"line": {}, "cell": {}}
        self.magics_manager = MagicsManager(self)
        self.alias_manager = None
        self.parent = None
        self.real = None  # IPython's own shell, once a magic needed it
        self._last_traceback = None

    # Facts

    @property
    def user_ns(self):
        return S.ns

    @property
    def user_global_ns(self):
        return S.ns

    @property
    def user_module(self):
        return sys.modules["__main__"]

    @property
    def user_ns_hidden(self):
        return set(lazy.load("magics.names").HIDDEN)

    @property
    def execution_count(self):
        return S.cell_count

    @property
    def home_dir(self):
        return os.path.expanduser("~")

    @classmethod
    def instance(cls, *args, **kwargs):
        return S.shell

    @classmethod
    def initialized(cls):
        return True

    def get_ipython(self):
        return self

    def shows_itself(self, obj):
        """Has somebody registered an _ipython_display_ function for the type? Then it is called."""
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
        """The function of a magic, or None."""
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
        """Take the magics of IPython-style classes or instances."""
        for given in magics:
            instance = given(self) if isinstance(given, type) else given
            for kind, table in (getattr(instance, "magics", None) or {}).items():
                for name, function in table.items():
                    if isinstance(function, str):
                        function = getattr(instance, function)
                    self.custom_magics[kind][name] = function

    def register_alias(self, name, command):
        """A line magic that runs a shell command."""
        self.custom_magics["line"][name] = lambda line: self.system(command + " " + line)

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
        return lazy.load("transform").transform_cell(raw_cell)

    def run_cell(
        self, raw_cell, store_history=False, silent=False, shell_futures=True, cell_id=None
    ):
        """Run text as a cell inside the current cell; errors are shown and kept in the result."""
        result = Result(Info(raw_cell, store_history, silent))
        try:
            result.result = self.run_body(raw_cell, show=not silent)
        except KeyboardInterrupt:
            raise
        except Exception as error:
            result.error_in_exec = error
            self.showtraceback((type(error), error, error.__traceback__))
        return result

    def run_body(self, text, show=True, lines_above=0, value=False):
        """Run text like a cell; errors go to the caller. With `value`, the last value is returned
        and not shown."""
        code = lazy.load("transform").transform_cell(text) if cell.needs_transform(text) else text
        name = (
            "%s body" % cell.cell_name(None, S.cell_count)
            if not lines_above
            else cell.cell_name(None, S.cell_count)
        )
        parts, shown = cell.compile_cell("\n" * lines_above + code, name)
        if not parts:
            return None
        got = cell.run_parts(parts, shown)
        if shown and got is not None and show and not value:
            cell.show_result(got)
        return got if shown else None

    async def run_cell_async(self, raw_cell, **options):
        """As run_cell; for those who await it."""
        return self.run_cell(raw_cell)

    def ev(self, expression):
        """The value of an expression."""
        return eval(expression, S.ns)

    def ex(self, code):
        """Execute statements."""
        exec(code, S.ns)

    def push(self, variables, interactive=True):
        """Put names into the user's namespace."""
        if isinstance(variables, dict):
            S.ns.update(variables)
            return
        if isinstance(variables, str):
            variables = variables.split()
        frame = sys._getframe(1)
        for name in variables:
            S.ns[name] = eval(name, frame.f_globals, frame.f_locals)

    def drop_by_id(self, variables):
        """Take names out again if they still mean the same objects."""
        for name, value in variables.items():
            if name in S.ns and S.ns[name] is value:
                del S.ns[name]

    def reset(self, new_session=True, aggressive=False):
        lazy.load("magics.names").reset_names()

    # Errors

    def showtraceback(self, exc_tuple=None, *args, **kwargs):
        """The traceback of an exception on stderr."""
        error = (exc_tuple or sys.exc_info())[1]
        if error is not None:
            lines = lazy.load("tracebacks").describe(error)[2]
            sys.stderr.write("\n".join(lines) + "\n")

    def showsyntaxerror(self, *args, **kwargs):
        self.showtraceback()

    def set_custom_exc(self, exc_tuple, handler):
        """Accepted, not used: error frames are made by the runner."""

    def excepthook(self, kind, value, traceback):
        self.showtraceback((kind, value, traceback))

    # Accepted, because notebooks call them; nothing to do here

    def set_next_input(self, text, replace=False):
        """There is no input box to fill; the text is shown instead."""
        print(text)

    def enable_gui(self, gui=None):
        pass

    def enable_matplotlib(self, gui=None):
        return "inline", "inline"

    def enable_pylab(self, gui=None, import_all=True, welcome_message=False):
        return "inline", "inline", set()

    def show_usage(self):
        lazy.load("magics.helping").page(lazy.load("magics").USAGE)

    def ask_exit(self):
        raise SystemExit

    def observe(self, *args, **kwargs):
        pass

    def atexit_operations(self):
        pass

    @property
    def history_manager(self):
        return lazy.load("history").Manager()

    @property
    def extension_manager(self):
        return lazy.load("magics.extensions").Manager(self)

    def __getattr__(self, name):
        # Rare parts (Completer …) exist once IPython's own shell does.
        real = self.__dict__.get("real")
        if real is not None and not name.startswith("__"):
            return getattr(real, name)
        raise AttributeError("%r object has no attribute %r" % (type(self).__name__, name))


def make():
    """The shell object of this session."""
    if S.shell is None:
        S.shell = ZMQInteractiveShell()
    return S.shell
