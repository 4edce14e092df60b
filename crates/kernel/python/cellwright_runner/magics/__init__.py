"""Magics: the table of names, and the dispatch to their functions.

Lookup order: magics that the user registered, the runner's, then IPython's if it can be imported. A
function of the runner takes (shell, line) or, as cell magic, (shell, line, body); registered ones
take (line) or (line, body) as in IPython.
"""

from .. import lazy
from ..state import STATE

USAGE = (
    "Cellwright's Python runner: cells are Python with top-level await; %magic, %%magic,\n"
    "!command, x = !command and name? work as in IPython. %lsmagic lists the magics."
)


class UsageError(Exception):
    """A magic that is used wrongly or does not exist; shown as one line."""

    cellwright_usage = True


def _table(text):
    found = {}
    for line in text.split("\n"):
        module, _, names = line.strip().partition(":")
        for name in names.split():
            name, _, function = name.partition("=")
            found[name] = (module, function or name)
    return found


LINE = _table(
    """basic: cd pwd ls ll cat mkdir rmdir rm cp mv env set_env pushd popd dirs dhist
       basic: sx=getoutput system getoutput lsmagic
       history: history hist=history
       code: load loadpy=load pycat save macro rerun recall rep=recall notebook
       aliases: alias unalias
       session_log: logstart logstop logon logoff logstate
       store: store
       toggles: automagic autocall pprint xmode tb
       help: pinfo pinfo2 psearch quickref magic
       timing: time timeit
       variables: who whos who_ls reset reset_selective xdel
       run: run
       packages: pip uv conda mamba=conda micromamba=conda
       plotting: matplotlib pylab config
       formats: precision
       extensions: load_ext unload_ext reload_ext autoreload aimport
       unavailable: debug pdb gui edit=no_editor ed=no_editor"""
)
CELL = _table(
    """timing: time=time_cell timeit=timeit_cell
       run: capture
       scripts: bash sh=bash script writefile file=writefile python=program python2=program
       scripts: python3=program perl=program ruby=program pypy=program system=system_cell
       scripts: sx=getoutput_cell !=getoutput_cell
       rich_display: html HTML=html markdown latex svg SVG=svg javascript js=javascript"""
)


def find(shell, name, kind="line"):
    """Return the function (line) or (line, body) of a magic, or None."""
    custom = shell.custom_magics[kind].get(name)
    if custom is not None:
        return custom
    entry = (LINE if kind == "line" else CELL).get(name)
    if entry is not None:
        function = getattr(lazy.load("magics." + entry[0]), entry[1])
        if entry[1] == "program":
            return lambda line, body: function(shell, name, line, body)
        return lambda *args: function(shell, *args)
    real = lazy.load("ipython_installed").real_shell(shell)
    if real is not None:
        return real.find_magic(name, kind)
    return None


def run_line(shell, name, line):
    """%name line"""
    name = name.strip()
    function = find(shell, name)
    if function is None:
        if find(shell, name.lstrip("%"), "cell") is not None:
            raise UsageError(
                "Line magic function `%%%s` not found (But cell magic `%%%%%s` exists, "
                "did you mean that instead?)." % (name, name.lstrip("%"))
            )
        raise UsageError("Line magic function `%%%s` not found." % name)
    if not _keeps_text(function, name):
        line = lazy.load("shell").expand(line)
    return function(line, **_local_scope(function))


def run_cell(shell, name, line, body):
    """%%name line, with the text below"""
    function = find(shell, name, "cell")
    if function is None:
        if find(shell, name) is not None:
            raise UsageError(
                "Cell magic `%%%%%s` not found (But line magic `%%%s` exists, "
                "did you mean that instead?)." % (name, name)
            )
        raise UsageError("Cell magic `%%%%%s` not found." % name)
    if not _keeps_text(function, name):
        line = lazy.load("shell").expand(line)
    return function(line, body, **_local_scope(function))


def _keeps_text(function, name):
    """Return whether a magic receives its line without expanded names."""
    return getattr(function, "_ipython_magic_no_var_expand", False) or name in ("timeit", "time")


def _local_scope(function):
    """Return the argument of magics that ask for the names of the calling function."""
    if not getattr(function, "needs_local_scope", False):
        return {}
    shell = lazy.load("shell")
    return {"local_ns": shell.caller_locals() or STATE.ns}


def list_magics(shell):
    """Return {"line": {name: …}, "cell": {name: …}} with all magics that do not need IPython."""
    return {
        "line": dict(LINE, **shell.custom_magics["line"]),
        "cell": dict(CELL, **shell.custom_magics["cell"]),
    }


def split(line):
    """Split a line into words as a shell does; an unclosed quote is an ordinary character."""
    shlex = lazy.stdlib("shlex")
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def options(line, flags, valued, usage):
    """Parse the options at the start of a line. Returns (dict, rest of the line). Options in
    `flags` have no value, those in `valued` take one word."""
    found, rest = {}, line.strip()
    while rest.startswith("-") and len(rest) > 1 and rest[1] != " ":
        word, _, after = rest.partition(" ")
        if word == "--":
            return found, after.strip()
        name = word.lstrip("-")
        head, equals, inline = name.partition("=")
        if not word.startswith("--"):
            # -n100, -qo
            letters = name
            while letters:
                letter, letters = letters[0], letters[1:]
                if letter in valued:
                    if not letters:
                        letters, _, after = after.strip().partition(" ")
                    found[letter] = letters.lstrip("=")
                    letters = ""
                elif letter in flags:
                    found[letter] = True
                else:
                    raise UsageError("option -%s not recognized; %s" % (letter, usage))
        elif head in valued:
            if not equals:
                inline, _, after = after.strip().partition(" ")
            found[head] = inline
        elif head in flags:
            found[head] = True
        else:
            raise UsageError("option --%s not recognized; %s" % (head, usage))
        rest = after.strip()
    return found, rest
