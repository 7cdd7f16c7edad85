"""The page, as a browser shows it (where Chromium is installed) and as bytes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from gevent import subprocess

from actors.sandbox.page import PAGE
from tests.sandbox.asking import running

BROWSER = shutil.which("chromium")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--virtual-time-budget=3000",
    "--dump-dom",
]  # fmt: skip


def test_the_page_needs_nothing_from_elsewhere() -> None:
    assert not re.search(rb"https?://|\bsrc=|@import|url\(|<link", PAGE)


def test_the_page_never_takes_what_people_write_for_markup() -> None:
    assert b"innerHTML" not in PAGE
    assert b"insertAdjacentHTML" not in PAGE


@pytest.mark.real
def test_the_page_is_served_at_the_root() -> None:
    with running() as asker:
        said = asker.ask("GET", "/", None)
        assert (said.status, said.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert said.body == PAGE


@pytest.mark.real
@pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")
def test_a_browser_shows_messages_marks_typing_and_calls(tmp_path: Path) -> None:
    with running() as asker:
        message = asker.client.post("team", "<b>Is it done?</b>", "ana", direct=False)
        asker.mark("PUT", "team", message, "🤔")
        asker.ask("PUT", "/v1/chats/team/typing?thread=7")
        asker.mark("PUT", "other", "817", "👍", token="oncall")
        command = [str(BROWSER), *FLAGS, f"--user-data-dir={tmp_path}", asker.service.base_url + "/"]
        # gevent's: the service of this test answers while the browser runs
        shown = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
    dom = shown.stdout.decode()
    assert "&lt;b&gt;Is it done?&lt;/b&gt;" in dom
    assert '<span title="support">🤔</span>' in dom
    assert '<span title="oncall">👍</span>' in dom
    assert "support is typing in thread 7" in dom
    assert '<span class="note">group</span>' in dom
    assert "2 chats · 2 marks · 1 typing" in dom
    assert re.search(r"<td>typing start</td><td>ok</td><td>1</td>", dom.replace(' class=""', ""))
    assert '<span id="link" class="up">live</span>' in dom
