"""Emoji forms: which code points exist as text and as emoji, and the three ways platforms want that told
(U+FE0F): not at all, only where the emoji form is not the default, wherever there are two."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

FE0F: Final = "\ufe0f"
_JOINER: Final = "\u200d"
_KEYCAP: Final = "\u20e3"
_SKIN_TONES: Final = frozenset("🏻🏼🏽🏾🏿")

TWO_FORMS: Final = frozenset(
    "©®‼⁉™ℹ↔↕↖↗↘↙↩↪⌚⌛⌨⏏⏩⏪⏫⏬⏭⏮⏯⏰⏱⏲⏳⏸⏹⏺Ⓜ▪▫▶◀◻◼◽◾☀☁☂☃☄☎☑☔☕☘☝☠☢☣☦☪☮☯☸☹☺♀♂♈♉♊♋♌♍♎♏♐♑♒♓♟♠♣♥♦♨♻♾♿⚒⚓⚔⚕⚖⚗⚙⚛⚜⚠⚡⚧⚪⚫⚰"
    "⚱⚽⚾⛄⛅⛈⛎⛏⛑⛓⛔⛩⛪⛰⛱⛲⛳⛴⛵⛷⛸⛹⛺⛽✂✅✈✉✊✋✌✍✏✒✔✖✝✡✨✳✴❄❇❌❎❓❔❕❗❣❤➕➖➗➡➰➿⤴⤵⬅⬆⬇⬛⬜⭐⭕〰〽㊗㊙🀄🅰🅱🅾🅿🈂🈚🈯🈷🌍"
    "🌎🌏🌕🌜🌡🌤🌥🌦🌧🌨🌩🌪🌫🌬🌶🍸🍽🎓🎖🎗🎙🎚🎛🎞🎟🎧🎬🎭🎮🏂🏄🏆🏊🏋🏌🏍🏎🏔🏕🏖🏗🏘🏙🏚🏛🏜🏝🏞🏟🏠🏭🏳🏵🏷🐈🐕🐟🐦🐿👁👂👆👇👈👉👍👎👓👪👽💣💰"
    "💳💻💿📋📚📟📤📥📦📪📫📬📭📷📹📺📻📽🔈🔍🔒🔓🕉🕊🕐🕑🕒🕓🕔🕕🕖🕗🕘🕙🕚🕛🕜🕝🕞🕟🕠🕡🕢🕣🕤🕥🕦🕧🕯🕰🕳🕴🕵🕶🕷🕸🕹🖇🖊🖋🖌🖍🖐🖥🖨🖱🖲🖼🗂🗃🗄🗑🗒🗓🗜🗝🗞🗡"
    "🗣🗨🗯🗳🗺😐🚇🚍🚑🚔🚘🚭🚲🚹🚺🚼🛋🛍🛎🛏🛠🛡🛢🛣🛤🛥🛩🛰🛳"
)
"""Code points with a text and an emoji form (Unicode's emoji-variation-sequences; there the digits, ``#`` and
``*`` too, but those only as part of a keycap)."""


_TEXT_BY_DEFAULT: Final = frozenset("〰〽㊗㊙🈂🈷")
"""Wide code points that are shown as text all the same, if they are not told."""

_TONE: Final = "[🏻🏼🏽🏾🏿]"
_FLAG: Final = re.compile("[\U0001f1e6-\U0001f1ff]{2}|🏴[\U000e0061-\U000e007a]+\U000e007f")
_PART: Final = re.compile(f"(.){_TONE}?", re.DOTALL)
_NOT_IN_UNICODE_14: Final = range(0x1F680, 0x1FB00)
"""Where newer emojis come that this Python does not know yet."""


def bare(emoji: str) -> str:
    """``emoji`` without U+FE0F."""
    return emoji.replace(FE0F, "")


def marked(emoji: str) -> str:
    """``emoji`` with U+FE0F after every code point that has two forms; within a joined sequence only where
    the emoji form is not the default, before a skin tone nowhere. Other text comes back as it is."""
    plain = bare(emoji)
    joined = _JOINER in plain
    out: list[str] = []
    for at, point in enumerate(plain):
        following = plain[at + 1 : at + 2]
        out.append(point)
        keycap = following == _KEYCAP and point.isascii()
        two_forms = point in TWO_FORMS and following not in _SKIN_TONES
        if keycap or (two_forms and not (joined and _is_emoji_by_default(point))):
            out.append(FE0F)
    return "".join(out)


def qualified(emoji: str) -> str:
    """``emoji`` with U+FE0F after every code point whose emoji form is not the default (before a skin tone it
    is): the fully qualified form. Other text comes back as it is."""
    plain = bare(emoji)
    out: list[str] = []
    for at, point in enumerate(plain):
        following = plain[at + 1 : at + 2]
        out.append(point)
        keycap = following == _KEYCAP and point.isascii()
        two_forms = point in TWO_FORMS and following not in _SKIN_TONES
        if keycap or (two_forms and not _is_emoji_by_default(point)):
            out.append(FE0F)
    return "".join(out)


def is_emoji(text: str) -> bool:
    """Whether ``text`` is one Unicode emoji, in whichever form: a symbol, a joined sequence, a flag, a keycap."""
    plain = bare(text)
    if _FLAG.fullmatch(plain) or re.fullmatch(f"[0-9#*]{_KEYCAP}", plain):
        return True
    parts = [_PART.fullmatch(part) for part in plain.split(_JOINER)]
    return all(part is not None and _is_symbol(part[1]) for part in parts)


def _is_symbol(point: str) -> bool:
    if point in TWO_FORMS:
        return True
    if 0x1F1E6 <= ord(point) <= 0x1F1FF:  # half a flag
        return False
    category = unicodedata.category(point)
    return (category == "So" and ord(point) >= 0x2300) or (category == "Cn" and ord(point) in _NOT_IN_UNICODE_14)


def _is_emoji_by_default(point: str) -> bool:
    """Wide code points are shown as emoji without being told, but for a few."""
    return unicodedata.east_asian_width(point) == "W" and point not in _TEXT_BY_DEFAULT
