"""Emoji forms: the columns of the mapping that every platform needs."""

from __future__ import annotations

import pytest

from actors.platforms.emoji import TWO_FORMS, bare, marked
from actors.platforms.matrix import MatrixAdapter

# Bare form, and whether a Matrix key carries U+FE0F.
OURS = {
    "👀": False, "🤔": False, "🔥": False, "👨\u200d💻": False, "⚡": True, "✍": True, "👍": True,
    "😱": False, "🥱": False, "😨": False, "🧠": False, "🛠": True, "💻": True, "🌐": False, "✅": True,
    "❌": True, "⏳": True, "⚠": True, "🗜": True, "🎧": True,
}  # fmt: skip


@pytest.mark.parametrize(("emoji", "selector"), OURS.items())
def test_each_of_our_emojis_has_the_key_that_other_clients_send(emoji: str, selector: bool) -> None:
    key = emoji + "\ufe0f" if selector else emoji
    assert marked(emoji) == key
    assert marked(key) == key
    assert bare(key) == emoji
    assert MatrixAdapter().normalise(emoji) == key


@pytest.mark.parametrize(
    ("plain", "key"),
    [
        ("❤\u200d🔥", "❤\ufe0f\u200d🔥"),
        ("🤷\u200d♂", "🤷\u200d♂\ufe0f"),
        ("👁\u200d🗨", "👁\ufe0f\u200d🗨\ufe0f"),
        ("👍🏽", "👍🏽"),
        ("🕵🏽\u200d♀", "🕵🏽\u200d♀\ufe0f"),
        ("1\u20e3", "1\ufe0f\u20e3"),
        ("#\u20e3", "#\ufe0f\u20e3"),
        ("🇩🇪", "🇩🇪"),
        ("🏳\u200d🌈", "🏳\ufe0f\u200d🌈"),
    ],
)
def test_sequences_have_their_qualified_form(plain: str, key: str) -> None:
    assert marked(plain) == key
    assert marked(key) == key


@pytest.mark.parametrize("text", ["100", "mxc://example.org/a1b2#c", "ok*", ""])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert marked(text) == text


def test_the_list_holds_single_code_points_without_ascii() -> None:
    assert all(len(point) == 1 and not point.isascii() for point in TWO_FORMS)
    assert len(TWO_FORMS) == 359
