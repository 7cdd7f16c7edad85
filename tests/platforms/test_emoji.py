"""Emoji forms: the columns of the mapping that every platform needs."""

from __future__ import annotations

import pytest

from actors.platforms.emoji import TWO_FORMS, bare, is_emoji, marked, qualified
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


# Bare form, and whether the fully qualified form carries U+FE0F.
QUALIFIED = {
    "👀": False, "👨\u200d💻": False, "⚡": False, "✍": True, "👍": False, "🛠": True, "💻": False, "✅": False, "❌": False,
    "⏳": False, "⚠": True, "🗜": True, "🎧": False, "❤": True, "〰": True, "㊙": True, "🈂": True, "🀄": False,
}  # fmt: skip


@pytest.mark.parametrize(("emoji", "selector"), QUALIFIED.items())
def test_the_fully_qualified_form_tells_only_what_is_not_the_default(emoji: str, selector: bool) -> None:
    form = emoji + "\ufe0f" if selector else emoji
    assert qualified(emoji) == qualified(emoji + "\ufe0f") == qualified(form) == form


@pytest.mark.parametrize(
    ("plain", "form"),
    [
        ("❤\u200d🔥", "❤\ufe0f\u200d🔥"),
        ("🤷\u200d♂", "🤷\u200d♂\ufe0f"),
        ("👍🏽", "👍🏽"),
        ("✍🏽", "✍🏽"),
        ("🕵🏽\u200d♀", "🕵🏽\u200d♀\ufe0f"),
        ("1\u20e3", "1\ufe0f\u20e3"),
        ("🏳\u200d🌈", "🏳\ufe0f\u200d🌈"),
        ("ok", "ok"),
        ("", ""),
    ],
)
def test_sequences_are_fully_qualified_in_each_part(plain: str, form: str) -> None:
    assert qualified(plain) == qualified(form) == form


@pytest.mark.parametrize(
    "emoji",
    ["👀", "⚡", "⚡\ufe0f", "©", "‼", "ℹ", "👍🏽", "👨\u200d💻", "👩🏽\u200d🚀", "❤\u200d🔥", "🇩🇪", "1\u20e3", "#\ufe0f\u20e3",
     "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "🫨", "\U0001fadf"],
)  # fmt: skip
def test_one_emoji_of_any_make_is_one_emoji(emoji: str) -> None:
    assert is_emoji(emoji)


@pytest.mark.parametrize(
    "text",
    ["", "ok", "a", "1", "é", "→", ":eyes:", "👀👀", "👀 ", "🏽", "🇩", "👍🏽🏽", "\u200d", "👀\u200d", "name:417", "∑"],
)
def test_anything_else_is_none(text: str) -> None:
    assert not is_emoji(text)
