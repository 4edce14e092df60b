"""matplotlib figures: shown once, closed, also after errors."""

import struct

import pytest
from host import data, error, kinds, of, result, status, text


@pytest.fixture
def plt(host, needs):
    needs("matplotlib")
    events = host.run("import matplotlib.pyplot as plt", timeout=120)
    assert status(events) == "ok" and kinds(events) == ["started", "done"]
    return host


def pictures(events):
    return [data(e) for e in of(events, "display")]


def test_shown_after_the_cell(plt):
    events = plt.run("print('before')\nplt.plot([1, 2]);", timeout=60)
    assert kinds(events) == ["started", "stdout", "display", "done"]
    made = pictures(events)[0]
    assert made["image/png"].startswith(b"\x89PNG")
    assert made["text/plain"] == "<Figure size 640x480 with 1 Axes>"
    assert result(plt.run("plt.get_fignums()")) == "[]"
    assert kinds(plt.run("1")) == ["started", "result", "done"]


def test_show_shows_at_that_point(plt):
    events = plt.run(
        "plt.plot([1])\nplt.show()\nprint('after')\nplt.plot([2])\nplt.show()", timeout=60
    )
    assert kinds(events) == ["started", "display", "stdout", "display", "done"]
    assert text(events, "stderr") == ""


def test_display_is_not_shown_twice(plt):
    events = plt.run("fig, ax = plt.subplots()\nax.plot([1])\ndisplay(fig)", timeout=60)
    assert len(pictures(events)) == 1
    events = plt.run("fig, ax = plt.subplots()\nax.plot([1])\nfig", timeout=60)
    assert pictures(events) == [] and "image/png" in data(of(events, "result")[0])
    assert len(pictures(plt.run("fig.show()", timeout=60))) <= 1
    assert "image/png" in data(of(plt.run("fig", timeout=60), "result")[0])


def test_several_figures_in_order(plt):
    events = plt.run(
        "for i in range(3):\n    plt.figure(figsize=(i + 1, 1)); plt.plot([i])", timeout=60
    )
    assert [p["text/plain"] for p in pictures(events)] == [
        "<Figure size %d00x100 with 1 Axes>" % (i + 1) for i in range(3)
    ]


def test_shown_when_the_cell_fails(plt):
    events = plt.run("plt.plot([1])\n1/0", timeout=60)
    assert kinds(events) == ["started", "error", "display", "done"] and status(events) == "error"


def test_of_an_empty_figure_only_its_name_is_shown(plt):
    shown = pictures(plt.run("plt.figure();", timeout=60))
    assert shown == [{"text/plain": "<Figure size 640x480 with 0 Axes>"}]
    assert result(plt.run("plt.get_fignums()")) == "[]"


def test_formats(plt):
    plt.run("%config InlineBackend.figure_format = 'svg'")
    made = pictures(plt.run("plt.plot([1]);", timeout=60))[0]
    assert "<svg" in made["image/svg+xml"] and "image/png" not in made
    plt.run("%config InlineBackend.figure_format = 'retina'")
    event = of(plt.run("plt.plot([1]);", timeout=60), "display")[0]
    wide, high = struct.unpack(">II", data(event)["image/png"][16:24])
    assert event["metadata"]["image/png"] == {"width": wide // 2, "height": high // 2}
    plt.run("%config InlineBackend.figure_formats = ['png', 'svg']")
    assert {"image/png", "image/svg+xml"} <= set(pictures(plt.run("plt.plot([1]);", timeout=60))[0])
    assert error(plt.run("%config InlineBackend.figure_format = 'bmp'"))["ename"] == "ValueError"


def test_capture(plt):
    assert kinds(plt.run("%%capture c\nplt.plot([1])", timeout=60)) == ["started", "done"]
    assert result(plt.run("len(c.outputs)")) == "2"


def test_children_can_plot_too(plt):
    events = plt.run(
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import matplotlib.pyplot as p;"
        ' p.plot([1]); p.savefig("x.png"); print("ok")\'])\nNone',
        timeout=120,
    )
    assert text(events) == "ok\n"


def test_magic_and_pandas_plot(plt, needs):
    needs("pandas")
    events = plt.run(
        "%matplotlib inline\nimport pandas as pd\npd.Series([1, 2]).plot();", timeout=120
    )
    assert status(events) == "ok", error(events)
    assert len(pictures(events)) == 1
