"""Emoji forms: which code points exist as text and as emoji, and the two ways platforms want that told
(U+FE0F)."""

from __future__ import annotations

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


def _is_emoji_by_default(point: str) -> bool:
    """Wide code points are shown as emoji without being told (true of all that occur in joined sequences)."""
    return unicodedata.east_asian_width(point) == "W"
