"""Fixtures: a fresh runner per test, for every interpreter under test."""

import subprocess

import pytest
from host import Host, interpreters
from kernels import Kernel

_importable = {}


@pytest.fixture(params=interpreters())
def python(request):
    return request.param


@pytest.fixture
def host(python, tmp_path):
    host = Host(python, cwd=str(tmp_path))
    yield host
    host.close()


@pytest.fixture
def needs(python):
    """needs("numpy") skips the test unless the interpreter under test can import the library."""

    def check(*names):
        for name in names:
            if (python, name) not in _importable:
                command = [python, "-c", "import " + name]
                _importable[python, name] = (
                    subprocess.run(command, capture_output=True).returncode == 0
                )
            if not _importable[python, name]:
                pytest.skip("%s has no %s" % (python, name))

    return check


@pytest.fixture
def version(host):
    return tuple(int(part) for part in host.hello["version"].split("."))


@pytest.fixture
def start_kernel(python, needs, tmp_path):
    """Starts IPython kernels, which are shut down at the end of the test."""
    needs("ipykernel")
    started = []

    def start(env=None):
        started.append(Kernel(python, tmp_path, env))
        return started[-1]

    yield start
    for kernel in started:
        kernel.close()
