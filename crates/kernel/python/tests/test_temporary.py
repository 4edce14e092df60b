"""Temporary directories: not where another user could replace them."""

import os

from host import Host, result, text

CREATE = (
    "from cellwright_runner import temporary\n"
    "import os\n"
    "d = temporary.private_directory('cellwright-test-'); mode = os.stat(d).st_mode & 0o777; os.rmdir(d)\n"
    "(os.path.dirname(d), oct(mode))"
)


def test_only_a_safe_directory_is_used(python, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    inner = shared / "inner"
    inner.mkdir(mode=0o700)
    for mode, directory, is_used in (
        (0o1777, shared, True),
        (0o777, shared, False),
        (0o777, inner, False),
        (0o755, inner, True),
    ):
        os.chmod(shared, mode)
        host = Host(python, cwd=str(tmp_path), env={"TMPDIR": str(directory)})
        try:
            parent, created_mode = eval(result(host.run(CREATE)))
            assert (parent == os.path.realpath(directory)) == is_used, (oct(mode), parent)
            assert created_mode == "0o700"
            assert text(host.run("%%script cat\nhi")) == "hi\n"
        finally:
            host.close()
    assert os.listdir(inner) == []


def test_missing_directory_is_replaced(python, tmp_path):
    host = Host(python, cwd=str(tmp_path), env={"TMPDIR": str(tmp_path / "none")})
    try:
        parent, _ = eval(result(host.run(CREATE)))
        assert parent != str(tmp_path / "none") and not (tmp_path / "none").exists()
    finally:
        host.close()
