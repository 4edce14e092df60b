"""%alias, %unalias: line magics that run a shell command."""

from . import LINE, UsageError

_FIXED = ("cd", "popd", "pushd", "dhist", "alias", "unalias")


class Alias:
    """A shell command; `%s` stands for one word of the line, `%l` for the whole line."""

    def __init__(self, shell, name, command):
        self.shell = shell
        self.name = name
        self.cmd = command
        self.nargs = command.count("%s") - command.count("%%s")
        if self.nargs and "%l" in command:
            raise UsageError("The %s and %l specifiers are mutually exclusive in alias definitions.")

    def __repr__(self):
        return "<alias %s for %r>" % (self.name, self.cmd)

    def __call__(self, line=""):
        command = self.cmd
        if "%l" in command:
            command, line = command.replace("%l", line), ""
        if self.nargs > 0:
            words = line.split(None, self.nargs)
            if len(words) < self.nargs:
                raise UsageError(
                    "Alias <%s> requires %d arguments, %d given."
                    % (self.name, self.nargs, len(words))
                )
            command = command % tuple(words[: self.nargs])
            line = " ".join(words[self.nargs :])
        else:
            command = command.replace("%%s", "%s")
        self.shell.system(("%s %s" % (command, line)).rstrip())


class AliasManager:
    """get_ipython().alias_manager"""

    def __init__(self, shell):
        self.shell = shell
        self._magics = shell.custom_magics["line"]

    @property
    def aliases(self):
        """The names and commands, sorted."""
        found = [a for a in self._magics.values() if isinstance(a, Alias)]
        return sorted((alias.name, alias.cmd) for alias in found)

    def define_alias(self, name, command):
        """Define an alias. The name of a magic is no possible name."""
        taken = name in LINE or name in self._magics and not self.is_alias(name)
        if name in _FIXED or taken:
            raise UsageError("The name %s can't be aliased because it is a magic command." % name)
        self._magics[name] = Alias(self.shell, name, command)

    soft_define_alias = define_alias

    def is_alias(self, name):
        """Return whether there is an alias of this name."""
        return isinstance(self._magics.get(name), Alias)

    def get_alias(self, name):
        """Return the alias of this name, or None."""
        return self._magics[name] if self.is_alias(name) else None

    def retrieve_alias(self, name):
        """Return the command of an alias."""
        if not self.is_alias(name):
            raise ValueError("%s is not an alias" % name)
        return self._magics[name].cmd

    def undefine_alias(self, name):
        """Remove an alias."""
        if not self.is_alias(name):
            raise ValueError("%s is not an alias" % name)
        del self._magics[name]


def alias(shell, line):
    """%alias [name command]: define a line magic that runs a shell command; without arguments, the
    list."""
    words = line.strip().split(None, 1)
    manager = shell.alias_manager
    if not words:
        print("Total number of aliases: %d" % len(manager.aliases))
        return manager.aliases
    if len(words) == 1:
        raise UsageError("%alias needs a name and a command")
    manager.define_alias(*words)
    return None


def unalias(shell, line):
    """%unalias name: remove an alias."""
    try:
        shell.alias_manager.undefine_alias(line.strip())
    except ValueError as error:
        raise UsageError(str(error)) from None
