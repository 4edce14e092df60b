"""matplotlib figures: shown once and closed, also after errors."""

import struct

import pytest
from host import data, error, filter_events, kinds, result, status, text


@pytest.fixture
def plt(host, needs):
    needs("matplotlib")
    events = host.run("import matplotlib.pyplot as plt", timeout=120)
    assert status(events) == "ok" and kinds(events) == ["started", "done"]
    return host


def figure_bundles(events):
    return [data(e) for e in filter_events(events, "display")]


def test_figures_are_shown_after_the_cell(plt):
    events = plt.run("print('before')\nplt.plot([1, 2]);", timeout=60)
    assert kinds(events) == ["started", "stdout", "display", "done"]
    bundle = figure_bundles(events)[0]
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert bundle["text/plain"] == "<Figure size 640x480 with 1 Axes>"
    assert result(plt.run("plt.get_fignums()")) == "[]"
    assert kinds(plt.run("1")) == ["started", "result", "done"]


def test_show_displays_figures_immediately(plt):
    events = plt.run(
        "plt.plot([1])\nplt.show()\nprint('after')\nplt.plot([2])\nplt.show()", timeout=60
    )
    assert kinds(events) == ["started", "display", "stdout", "display", "done"]
    assert text(events, "stderr") == ""


def test_displayed_figure_is_not_shown_twice(plt):
    events = plt.run("fig, ax = plt.subplots()\nax.plot([1])\ndisplay(fig)", timeout=60)
    assert len(figure_bundles(events)) == 1
    events = plt.run("fig, ax = plt.subplots()\nax.plot([1])\nfig", timeout=60)
    assert figure_bundles(events) == [] and "image/png" in data(filter_events(events, "result")[0])
    assert len(figure_bundles(plt.run("fig.show()", timeout=60))) <= 1
    assert "image/png" in data(filter_events(plt.run("fig", timeout=60), "result")[0])


def test_several_figures_in_order(plt):
    events = plt.run(
        "for i in range(3):\n    plt.figure(figsize=(i + 1, 1)); plt.plot([i])", timeout=60
    )
    assert [p["text/plain"] for p in figure_bundles(events)] == [
        "<Figure size %d00x100 with 1 Axes>" % (i + 1) for i in range(3)
    ]


def test_figures_are_shown_when_the_cell_fails(plt):
    events = plt.run("plt.plot([1])\n1/0", timeout=60)
    assert kinds(events) == ["started", "error", "display", "done"] and status(events) == "error"


def test_empty_figure_is_shown_by_its_repr(plt):
    shown = figure_bundles(plt.run("plt.figure();", timeout=60))
    assert shown == [{"text/plain": "<Figure size 640x480 with 0 Axes>"}]
    assert result(plt.run("plt.get_fignums()")) == "[]"


def test_formats(plt):
    plt.run("%config InlineBackend.figure_format = 'svg'")
    bundle = figure_bundles(plt.run("plt.plot([1]);", timeout=60))[0]
    assert "<svg" in bundle["image/svg+xml"] and "image/png" not in bundle
    plt.run("%config InlineBackend.figure_format = 'retina'")
    event = filter_events(plt.run("plt.plot([1]);", timeout=60), "display")[0]
    width, height = struct.unpack(">II", data(event)["image/png"][16:24])
    assert event["metadata"]["image/png"] == {"width": width // 2, "height": height // 2}
    plt.run("%config InlineBackend.figure_formats = ['png', 'svg']")
    assert {"image/png", "image/svg+xml"} <= set(
        figure_bundles(plt.run("plt.plot([1]);", timeout=60))[0]
    )
    assert error(plt.run("%config InlineBackend.figure_format = 'bmp'"))["ename"] == "ValueError"


def test_capture(plt):
    assert kinds(plt.run("%%capture c\nplt.plot([1])", timeout=60)) == ["started", "done"]
    assert result(plt.run("len(c.outputs)")) == "2"


def test_child_processes_can_plot(plt):
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
    assert len(figure_bundles(events)) == 1
