"""The few facts that many modules share: which cell is current, how it may read input, what is
alive."""


class State:
    """One instance, `S`. `cell` is the id of the last started cell and stays after it is done."""

    def __init__(self):
        self.ns = {}  # the dict of the real __main__
        self.cell = None
        self.count = 0  # execution count of the last cell with history
        self.cell_count = 0  # execution count told for the current cell
        self.stdin = "refuse"
        self.silent = False
        self.history = True
        self.forked = False  # True in a child made by os.fork: the channel is not ours there
        self.shell = None  # what get_ipython() returns, once somebody asked
        self.figures = None  # the module `figures`, once matplotlib.pyplot was imported
        self.asides = 0  # how many pagers and widgets take what is put out
        self.capture = None  # a list while %%capture collects displays
        self.kept = {}  # names of the prelude and of silent cells: %reset leaves them
        self.hidden = {}  # names that somebody else's kernel came with
        self.modules = []  # paths of the user's modules that were run
        self.prelude = False  # its names were put into the namespace
        self.publish = None  # how displays are sent where there is no channel
        self.future_flags = 0  # `from __future__` imports last for the whole session
        self.sources = {}  # file name of a cell -> its source, newest last
        self.folder = ""


S = State()
