"""The Unix socket file: its mode, what may be replaced and what may not."""

from __future__ import annotations

import fcntl
import os
import pathlib
import socket
import stat

import pytest

from actors.unix_listener import ListenError, UnixListener, peer_uid

pytestmark = pytest.mark.real


@pytest.fixture
def path(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "run" / "l.sock")


def left_over(path: str) -> None:
    """A socket file as a killed process leaves it."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(path)


def mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_the_socket_and_its_directory_are_private_whatever_the_umask(path: str, umask: int) -> None:
    before = os.umask(umask)
    try:
        listener = UnixListener(path)
    finally:
        os.umask(before)
    try:
        assert mode(path) == 0o600
        assert mode(os.path.dirname(path)) == 0o700
        assert mode(f"{path}.lock") & 0o077 == 0
    finally:
        listener.close()


def test_the_socket_is_private_before_its_mode_is_set(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkdir(os.path.dirname(path), 0o700)
    seen = []
    monkeypatch.setattr(os, "chmod", lambda name, _: seen.append(mode(name)))
    before = os.umask(0)
    try:
        UnixListener(path).close()
    finally:
        os.umask(before)
    assert seen == [0o600]


def test_a_directory_that_is_there_keeps_its_mode(tmp_path: pathlib.Path) -> None:
    (tmp_path / "run").mkdir(mode=0o750)
    UnixListener(str(tmp_path / "run" / "l.sock")).close()
    assert mode(str(tmp_path / "run")) == 0o750


def test_a_directory_where_others_could_put_their_own_socket_is_refused(tmp_path: pathlib.Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    directory.chmod(0o777)
    with pytest.raises(ListenError, match="private directory"):
        UnixListener(str(directory / "l.sock"))
    directory.chmod(0o1777)
    UnixListener(str(directory / "l.sock")).close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a directory away")
def test_a_directory_of_another_user_is_refused(tmp_path: pathlib.Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    os.chown(directory, 12_345, 12_345)
    with pytest.raises(ListenError, match="private directory"):
        UnixListener(str(directory / "l.sock"))


def test_a_left_over_socket_is_replaced(path: str) -> None:
    left_over(path)
    listener = UnixListener(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(path)
    listener.close()


def test_a_live_socket_is_never_taken_and_goes_on_serving(path: str) -> None:
    first = UnixListener(path)
    for _ in range(2):
        with pytest.raises(ListenError, match="in use by another process"):
            UnixListener(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(path)
    first.close()
    UnixListener(path).close()


def test_two_that_start_at_the_same_moment_do_not_both_clear_the_way(path: str) -> None:
    left_over(path)
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ListenError, match="in use by another process"):
            UnixListener(path)
        assert os.path.exists(path)
    UnixListener(path).close()


def test_a_live_socket_of_a_program_without_our_lock_is_not_taken(path: str) -> None:
    os.mkdir(os.path.dirname(path), 0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(path)
        other.listen(1)
        with pytest.raises(ListenError, match="in use"):
            UnixListener(path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(path)


def test_a_socket_that_does_not_answer_is_left_alone(path: str) -> None:
    os.mkdir(os.path.dirname(path), 0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(path)
        with pytest.raises(ListenError, match="cannot be tried"):
            UnixListener(path)
        assert os.path.exists(path)


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "l.sock"
    file.write_text("notes")
    with pytest.raises(ListenError, match="is no socket"):
        UnixListener(str(file))
    assert file.read_text() == "notes"


def test_a_refused_start_leaves_no_lock(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "l.sock"
    file.write_text("notes")
    with pytest.raises(ListenError):
        UnixListener(str(file))
    file.unlink()
    UnixListener(str(file)).close()


def test_closing_takes_the_socket_file_away_but_never_that_of_a_successor(path: str) -> None:
    listener = UnixListener(path)
    listener.close()
    assert not os.path.exists(path)
    listener = UnixListener(path)
    os.rename(path, f"{path}.old")
    pathlib.Path(path).write_text("somebody else's")
    listener.close()
    assert os.path.exists(path)


def test_a_path_that_is_too_long_is_refused_in_words(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ListenError, match="cannot listen"):
        UnixListener(str(tmp_path / ("x" * 120)))


def test_the_user_at_the_other_end_is_known(path: str) -> None:
    listener = UnixListener(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(path)
        accepted, _ = listener.socket.accept()
        with accepted:
            assert peer_uid(accepted) == os.geteuid()
    listener.close()
