"""State that many modules share: the current cell, the namespace, how cells may read input."""


class State:
    """The one instance is `STATE`. `cell` is the id of the last started cell, also after its
    end."""

    def __init__(self):
        self.ns = {}  # the dict of the real __main__
        self.cell = None
        self.count = 0  # execution count of the last cell with history
        self.cell_count = 0  # execution count sent for the current cell
        self.stdin = "refuse"
        self.silent = False
        self.store_history = True
        self.forked = False  # True in a child of os.fork, which must not use the channel
        self.shell = None  # the object that get_ipython() returns; None before its first use
        self.figures = None  # the module `figures`, once matplotlib.pyplot was imported
        self.redirects = 0  # number of open pagers and Output widgets that receive the output
        self.captured_displays = None  # a list while %%capture collects displays
        self.prelude_names = {}  # names of the prelude and of silent cells: %reset keeps them
        self.hidden_names = {}  # names that IPython hides from %who (in an IPython kernel)
        self.module_paths = []  # paths of the user's modules that were run
        self.prelude_installed = False  # the prelude's names are in the namespace
        self.publish_override = None  # sends displays where there is no channel
        self.future_flags = 0  # `from __future__` imports stay in effect for the session
        self.cell_sources = {}  # file name of a cell -> its source, newest last
        self.async_runner = None  # the `AsyncRunner` of the session's event loop, once there is one
        self.runs_script = False  # the cell is a file that runs as a script
        self.raw_code = ""  # the untransformed code of the current cell
        self.directory = ""  # the directory that contains this package


STATE = State()
