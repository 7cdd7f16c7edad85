"""Every emoji that states are shown with, by default or often: what each platform is sent for it."""

from __future__ import annotations

import pytest

from actors.platforms.registry import adapter
from actors.platforms.spec import Credentials
from actors.presence.terms import Command, Op
from tests.platforms.golden import form_of, made

# Emoji; whether Telegram takes it; whether U+FE0F goes with it (fully qualified, Matrix key); short name; Zulip's name;
# Teams' id. Zulip's code is the code points.
TABLE = """
👀 yes -- eyes eyes 1f440_eyes
🤔 yes -- thinking_face thinking think
🔥 yes -- fire fire fire
👨‍💻 yes -- male-technologist man_technologist mantechie
⚡ yes -m zap high_voltage 26a1_highvoltagesign
✍ yes qm writing_hand writing 270d_writinghand
👍 yes -m +1 +1 like
😱 yes -- scream scream screamingfear
🥱 yes -- yawning_face yawning_face 1f971_yawningface
😨 yes -- fearful fear fearful
🧠 no -- brain brain 1f9e0_brain
🛠 no qm hammer_and_wrench working_on_it 1f6e0_hammerandwrench
💻 no -m computer computer computer
🌐 no -- globe_with_meridians www 1f310_globewithmeridians
✅ no -m white_check_mark check 2705_whiteheavycheckmark
❌ no -m x cross_mark 274c_crossmark
⏳ no -m hourglass_flowing_sand time_ticking holdon
⚠ no qm warning warning 26a0_warningsign
🗜 no qm compression compression 1f5dc_compression
🎧 no -m headphones headphones headphone
"""
ROWS = [row.split() for row in TABLE.strip().splitlines()]


@pytest.mark.parametrize(("emoji", "telegram", "forms", "short", "zulip", "teams"), ROWS)
def test_each_platform_is_sent_its_own_form(
    emoji: str, telegram: str, forms: str, short: str, zulip: str, teams: str
) -> None:
    qualified = emoji + "\ufe0f" * (forms[0] == "q")
    sent = {
        "telegram": emoji if telegram == "yes" else None,
        "matrix": emoji + "\ufe0f" * (forms[1] == "m"),
        **dict.fromkeys(("discord", "whatsapp", "signal", "googlechat"), qualified),
        **dict.fromkeys(("slack", "mattermost"), short),
        "zulip": zulip,
        "teams": teams,
    }
    for written in (emoji, emoji + "\ufe0f"):
        assert {name: adapter(name).normalise(written) for name in sent} == sent
    for name in ("slack", "mattermost", "zulip", "teams"):
        assert adapter(name).normalise(f":{sent[name]}:") == sent[name]
    request = made(adapter("zulip"), Command(Op.SET, "7", None, "8", zulip), Credentials(options={"email": "b@x"}))
    code = "-".join(f"{ord(point):x}" for point in emoji)
    assert form_of(request) == {"emoji_name": zulip, "emoji_code": code, "reaction_type": "unicode_emoji"}
