//! Compares the outputs of `run` with the outputs of nbclient.
//!
//! A cell that contains `# raises` may raise an exception. A cell that begins with `# ipykernel` runs only on the
//! backend `jupyter`: the guide documents that the runner differs.

use std::process::Command;

use super::{BACKENDS, RunFixture, code, python_with_nbformat, tagged};

/// Runs the cells with nbclient and with Cellwright, on both backends. Fails if an output differs.
fn compare_with_nbclient(cells: &[&str]) {
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
            .args(["--seconds", "30", "--tries", "4"])
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
        "p = w.IntProgress(max=3)\ndisplay(p)\nfor i in range(3): p.value += 1",
        "from tqdm import tqdm\nfor i in tqdm(range(3)): pass",
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
