//! Compares the outputs of `run` with the outputs of nbclient.
//!
//! A cell that contains `# raises` may raise an exception. A cell that begins with `# ipykernel` runs only on the
//! backend `jupyter`: the guide documents that the runner differs.

use std::process::Command;

use super::{BACKENDS, RunFixture, code, python_with_nbformat, tagged};

/// Runs the cells with nbclient and with Cellwright, on both backends. Fails if an output differs. On the runner only
/// text counts.
fn compare_with_nbclient(cells: &[&str]) {
    compare(cells, &[]);
}

/// Like [`compare_with_nbclient`], but HTML, images and metadata of the runner count, too.
fn compare_rich_outputs(cells: &[&str]) {
    compare(cells, &["--strict"]);
}

fn compare(cells: &[&str], options: &[&str]) {
    for backend in BACKENDS {
        let fixture = RunFixture::new();
        let runs_on_backend =
            |cell: &&&str| backend == "jupyter" || !cell.starts_with("# ipykernel");
        let cells: Vec<_> = cells
            .iter()
            .filter(runs_on_backend)
            .map(|cell| {
                if cell.contains("# raises") {
                    tagged(cell, &["raises-exception"])
                } else {
                    code(cell)
                }
            })
            .collect();
        std::fs::create_dir(fixture.path("books")).unwrap();
        fixture.notebook("books/a.ipynb", &cells);
        let python = python_with_nbformat();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/run/oracle.py");
        let output = Command::new(&python)
            .arg(script)
            .arg(fixture.path("books"))
            .args(["--binary", env!("CARGO_BIN_EXE_cellwright")])
            .args(["--backend", backend, "--shown", "100"])
            .args(["--seconds", "60", "--tries", "4"])
            .args(options)
            .arg("--cache")
            .arg(fixture.path("cache"))
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{backend}: {stdout}{stderr}");
        assert!(
            stdout.contains(r#"{"equal": 1}"#),
            "{backend}: {stdout}{stderr}"
        );
    }
}

#[test]
fn text_values_and_exceptions() {
    compare_with_nbclient(&[
        "print('a'); print('b')\n1 + 1",
        "_ * 3",
        "5;",
        "import sys\nprint('out'); print('err', file=sys.stderr); print('out again')",
        "# raises\n1/0",
        "# raises\ndef f(n):\n    return g(n)\ndef g(n):\n    raise ValueError('no\\nway')\nf(3)",
        "# raises\nx = = 3",
        "# raises\nimport nosuch_module",
        "Out[1], In[1], _1, _i1",
        "None",
        "'a\\nb'",
        "{'a': list(range(40)), 'b': {'c': (1, 2)}}, [['x' * 30] * 5] * 3, {3, 1, 2}",
        "print('no newline', end='')",
        "print('50 %\\r100 %')",
        "import warnings; warnings.warn('careful')",
        "import logging; logging.warning('logged')",
        "b'bytes', 1e100, complex(1, 2), ..., int, len, lambda x: x and 1, f",
        "class B:\n    def __repr__(self): return 'line\\nline'\n[B(), B()], B()",
        "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\nP(1), P",
        "import collections as c\nc.OrderedDict(a=1), c.Counter('aab'), c.deque([1]), c.defaultdict(list, a=[1])",
        "import datetime, decimal, re\ndatetime.date(2020, 1, 2), decimal.Decimal('1.5'), re.compile('a+')",
        "list(range(2000))",
        "set(range(1200))",
        "'ünïcödé ☃ 🎉'",
        "import asyncio\nawait asyncio.sleep(0)\n'awaited'",
        "if True:\n    42",
        "help(abs)",
        "# raises\nraise KeyError('k') from ValueError('v')",
        "# raises\nassert 1 == 2, 'msg'",
        "try:\n    x = input('n? ')\nexcept Exception as e:\n    x = type(e).__name__\nx",
        "import getpass\ntry:\n    getpass.getpass()\nexcept NotImplementedError:\n    print('no password')",
        "# raises\nimport sys\nsys.exit()",
        "# raises\nsys.exit(0)",
        "# raises\nraise SystemExit('bye')",
        // Notebooks do not have the functions of the prelude.
        "# raises\nlog('x')",
        "sorted({'read', 'write', 'env', 'run', 'output', 'tool', 'log', 'phase'} & set(dir()))",
    ]);
}

#[test]
fn displays() {
    compare_with_nbclient(&[
        "from IPython.display import *\ndisplay('a', 1, [1, 2])",
        "display(HTML('<b>x</b>'), Markdown('**m**'), Latex('$x$'), JSON({'a': [1, None]}))",
        "h = display('first', display_id=True)",
        "h.update('second')",
        "display('x', display_id='my')\nprint('between')\nupdate_display('y', display_id='my')",
        "display(display_id='empty')",
        "for i in range(3):\n    clear_output(wait=True)\n    print(i)",
        "print('gone'); clear_output(); print('stays')",
        "print('kept'); clear_output(wait=True)",
        "class R:\n    def _repr_html_(self): return '<p>R</p>'\n    def __repr__(self): return 'R()'\nR()",
        "display(R(), metadata={'a': 1})",
        "class D:\n    def _ipython_display_(self): print('shows itself')\nD()",
        "# raises\nclass Bad:\n    def __repr__(self): raise ValueError('bad')\nBad()",
        "# ipykernel: the runner reports it on stderr\n# raises\nclass Bad:\n    def _repr_html_(self): raise ValueError('bad')\nBad()",
        "%%html\n<b>magic</b>",
        "%%markdown\n*md*",
        "%%javascript\n1",
        "import numpy as np, pandas as pd\nnp.arange(12).reshape(3, 4)",
        "df = pd.DataFrame(np.arange(2000).reshape(1000, 2))\ndf",
        "df.describe()",
        "df.info()",
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.title('t')",
        "fig, ax = plt.subplots()\nax.bar([1, 2], [3, 4]);",
        "fig",
        "plt.figure(); plt.show()",
        "# raises\ndf['nope']",
    ]);
}

/// A display or an update changes all displays with its id, in all cells that ran.
#[test]
fn display_ids() {
    compare_rich_outputs(&[
        "from IPython.display import display, update_display, clear_output, HTML\ndisplay(1, display_id='here')",
        "display(2, display_id='here')\nupdate_display(3, display_id='here')",
        "print('before')\ndisplay('other', display_id='there')\nprint('after')",
        "display(HTML('<b>4</b>'), display_id='here', metadata={'text/html': {'isolated': True}})",
        "for i in range(3):\n    display(i, display_id='same')",
        "h = display('handle', display_id=True)\nh.display('again')\nh.update('updated')",
        "h.display('once more')",
        "display('cleared', display_id='there')\nclear_output()\nprint('left')",
        "update_display('early', display_id='unknown')\ndisplay('known', display_id='unknown')",
        "update_display('waits', display_id='unknown')\nclear_output(wait=True)\ndisplay('last', display_id='here')",
    ]);
}

#[test]
fn widgets_and_progress_bars() {
    compare_with_nbclient(&[
        "import ipywidgets as w\nfrom IPython.display import display, clear_output\nout = w.Output()\nout",
        "print('before')\nwith out:\n    print('inside'); display('shown')\nprint('outside')",
        "# ipykernel: the runner's widgets do not know what they show\nout",
        "# ipykernel\nlen(out.outputs)",
        "with out:\n    clear_output()\n    print('new')\nprint('stays')",
        "# ipykernel\nout.outputs",
        "with out:\n    1/0\nprint('goes on')",
        "@w.interact(x=(0, 5))\ndef f(x=2):\n    print('x is', x)\n    return x * 2",
        "out.append_stdout('appended')",
        "@out.capture(clear_output=True)\ndef g():\n    print('captured')\ng()",
        "w.IntSlider(value=3)",
        "w.HBox([w.Label('a'), w.VBox([w.Text('x'), w.Checkbox()])])",
        "w.Image(value=b'\\x89PNG\\x00\\xff', format='png')",
        "p = w.IntProgress(max=3)\ndisplay(p)\nfor i in range(3): p.value += 1",
        "from tqdm import tqdm\nfor i in tqdm(range(3)): pass",
        "for i in tqdm(range(2), desc='outer'):\n    for j in tqdm(range(3), desc='inner', position=1): pass\nprint('end')",
        "for i in tqdm(range(2)):\n    for j in tqdm(range(3), position=1, leave=False): pass",
        "from tqdm.notebook import tqdm as bar\nfor i in bar(range(3)): pass",
        "# ipykernel: the runner has no page, so a bar is text\nfrom tqdm.auto import trange\nfor i in trange(2): pass",
    ]);
}

#[test]
fn magics_and_commands() {
    compare_with_nbclient(&[
        "!echo hi; echo err >&2",
        "x = !printf 'a\\nb\\n'\nx",
        "!exit 3\n_exit_code",
        "%%bash\necho one\necho two >&2",
        "# raises\nget_ipython().run_cell_magic('bash', '', 'exit 4\\n')",
        "%cd nowhere",
        "import os\nos.makedirs('d', exist_ok=True)\n%cd d",
        "%cd -",
        "%pip nosuchcommand",
        "str.upper?",
        "os.path.join??",
        "*abs*?",
        "nosuch?",
        "?",
        "%pdoc len",
        "%%writefile t.txt\nhello",
        "!cat t.txt",
        "%%capture c\nprint('captured')",
        "c.stdout, c.show()",
        "%env FOO=bar",
        "name = 'v'\n!echo {name} $name $FOO",
        "%who",
        "%precision 3\n3.14159",
        "%sx echo a",
        "%%sh\necho sh",
        "%history -n 1-2",
        "%pushd d\n%popd",
        "%dhist",
        "%load_ext autoreload\n%autoreload 2",
        "%unload_ext autoreload",
        "get_ipython().history_manager.hist_file",
        "# ipykernel: the runner raises\n# raises\n%nosuchmagic",
        "%reset -f",
        "%whos",
    ]);
}

/// Libraries that look at their environment to choose what they show.
#[test]
fn pandas_and_polars() {
    compare_rich_outputs(&[
        "import pandas as pd\npd.get_option('display.max_columns'), pd.get_option('display.max_rows')",
        "wide = pd.DataFrame({f'column {i}': range(70) for i in range(40)})\nwide",
        "print(wide.iloc[:3, :12])",
        "wide.describe()",
        "pd.Series(range(3), name='s')",
        "wide.iloc[:2, :2].style.format('{:.1f}')",
        "with pd.option_context('display.max_columns', 4):\n    display(wide.head(2))",
        "import polars as pl\npl.DataFrame({'a': [1, 2], 'b': ['x', 'y']})",
        "pl.DataFrame({f'c{i}': range(30) for i in range(20)})",
        "print(pl.Series('s', [1, 2, 3]))",
        "from polars._utils.various import _in_notebook\n_in_notebook()",
    ]);
}

#[test]
fn plotly_altair_and_bokeh() {
    compare_rich_outputs(&[
        "import plotly.graph_objects as go, plotly.io as pio\npio.renderers.default",
        "figure = go.Figure(go.Scatter(x=[1, 2], y=[3, 4]))\nfigure",
        "figure.show()",
        "import altair as alt, pandas as pd\nalt.renderers.active",
        "alt.Chart(pd.DataFrame({'x': [1, 2], 'y': [3, 4]})).mark_line().encode(x='x', y='y')",
        "from bokeh.io import output_notebook, show\nfrom bokeh.plotting import figure as plot\noutput_notebook(hide_banner=True)",
        "p = plot(width=200, height=200)\np.line([1, 2], [3, 4])\np",
        "show(p)",
    ]);
}

#[test]
fn holoviews() {
    compare_rich_outputs(&[
        "import holoviews as hv\nhv.extension('bokeh')",
        "curve = hv.Curve([1, 4, 9], 'x', 'y')\ncurve",
        "print(curve)",
        "curve * hv.Scatter([1, 4, 9])",
        "curve + hv.Bars([('a', 1), ('b', 2)])",
        "hv.HoloMap({i: hv.Curve([1, i]) for i in range(3)}, kdims='i')",
        "hv.Dataset([(1, 2), (3, 4)], 'a', 'b')",
        "hv.Store.current_backend, hv.extension._loaded",
    ]);
}

#[test]
fn rich_tqdm_and_widgets() {
    compare_rich_outputs(&[
        "from rich.console import Console\nfrom rich.table import Table\nConsole().is_jupyter",
        "import rich\nrich.print('[bold red]text[/] and', {'a': [1, 2]})",
        "table = Table('name', 'value')\ntable.add_row('a', '1')\ntable",
        "Console().print(table)",
        "from rich import pretty\npretty.install()\n{'a': list(range(40))}",
        "from tqdm import tqdm\nfor i in tqdm(range(3)): pass",
        "import ipywidgets as w\nw.VBox([w.IntSlider(value=3), w.Text('x')])",
        "w.interactive(lambda x: x, x=3)",
    ]);
}

#[test]
fn seaborn_sympy_and_ipython_display() {
    compare_rich_outputs(&[
        "import seaborn as sns, pandas as pd\nsns.set_theme()\nsns.color_palette('Set2')",
        "sns.lineplot(pd.DataFrame({'x': [1, 2, 3], 'y': [1, 4, 9]}), x='x', y='y');",
        "import sympy\nx, y = sympy.symbols('x y')\nsympy.Integral(x ** 2 / y, x)",
        "sympy.init_printing()\nx ** 2 / y",
        "[x ** 2, {y: x / 3}], (x + 1, 2)",
        "sympy.Matrix([[1, x], [y, 2]])",
        "print(sympy.pretty(x ** 2))",
        "from IPython.display import *\nimport IPython\nIPython.get_ipython() is get_ipython(), __IPYTHON__",
        "type(get_ipython()).__module__, type(get_ipython()).__name__, hasattr(get_ipython(), 'kernel')",
        "'IPKernelApp' in get_ipython().config, 'zmq' in str(type(get_ipython())).lower()",
        "display(Math('x^2'), Code('a = 1', language='python'), Pretty('text'), IFrame('https://x', 10, 20))",
        "display_html('<b>raw</b>', raw=True)\nYouTubeVideo('abc')",
        "ProgressBar(10)",
        "Javascript('1'), FileLink('none.txt')",
        "display(Javascript('1'), Audio(url='https://x/a.wav'), Video('https://x/a.mp4'))",
        "Image(url='https://x/a.png', width=10)",
    ]);
}

/// Cases in which the runner once differed from Jupyter.
#[test]
fn former_differences_of_the_runner() {
    compare_with_nbclient(&[
        "pwd",
        "import os\nos.makedirs('sub', exist_ok=True)",
        "cd sub",
        "cd ..",
        // Jupyter's commands have a terminal, so `ls` writes columns there.
        "ls sub",
        "%automagic",
        "# raises\npwd",
        "%automagic on",
        "%%bash --no-raise-error\necho a\nnosuch_command\necho b",
        "# raises\nget_ipython().run_line_magic('matplotlib', 'widget')",
        "%matplotlib inline\nimport matplotlib\nmatplotlib.backends.backend",
        "# raises\n%load nosuch.py",
        "# raises\n%run nosuch.py",
        "# raises\nx = = 3",
        "# raises\nexec('y = = 3')",
        "class E:\n    def __repr__(self): return 'ends\\n'\nE()",
        "[E(), E()]",
        "import asyncio\nasync def f(): return 7\nt = asyncio.create_task(f())",
        "t.done(), await t",
        "    # note\ns = '''\n    indented\n'''\ns",
        "get_ipython().ast_node_interactivity = 'all'",
        "1\n2",
        "get_ipython().ast_node_interactivity = 'last_expr'",
        "from IPython.core.magic import Magics, magics_class, line_magic\n@magics_class\nclass M(Magics):\n    @line_magic\n    def m(self, line): return line\nget_ipython().register_magics(M)\n%m x",
        "%history -f h.py 1-3\nopen('h.py').read()",
        "%save -f saved 1-2",
        "%macro again 1",
        "%rerun 1",
        "%alias hello echo hello\n%hello you",
        "%pprint\nlist(range(50))",
        "%pprint",
        "def g(k):\n    %time print(2 * k)\ng('hi')",
        "%%writefile mod.py\nimport sys\nprint(__name__, sys.argv[1:])",
        "%run -m mod -- a -x",
        "%run mod.py mo*.py",
        "%env var=A=B",
        "%reset -f out",
        "import collections as c, types\nc.Counter(), c.UserList([1]), types.SimpleNamespace(a=1), types.MappingProxyType({1: 2})",
        "class H:\n    def _repr_html_(self): return 5\nH()",
        "print('before'); exit(1); print('after')",
    ]);
}
