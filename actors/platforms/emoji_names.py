"""Names of emojis on the platforms that take names or ids in place of the emoji itself.

One row for each emoji that is known by name: without U+FE0F, the short name (Slack and Mattermost use the same
ones), Zulip's canonical name, the id of the Teams reaction; ``-`` where there is none, or none that is certain.
An emoji without a row can still be used: under the name that its platform has for it.

Sources: short names, github.com/iamcal/emoji-data; Zulip, github.com/zulip/zulip-terminal unicode_emojis.py and
tools/setup/emoji; Teams, learn.microsoft.com teams-reactions-reference. Traps: ``hourglass`` is ⌛ in short
names; Teams has no ⏳, ⌛ stands for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from actors.platforms.emoji import bare

_ROWS: Final = """
👀 eyes eyes 1f440_eyes
🤔 thinking_face thinking think
🔥 fire fire fire
👨‍💻 male-technologist man_technologist mantechie
⚡ zap high_voltage 26a1_highvoltagesign
✍ writing_hand writing 270d_writinghand
👍 +1 +1 like
😱 scream scream screamingfear
🥱 yawning_face yawning_face 1f971_yawningface
😨 fearful fear fearful
🧠 brain brain 1f9e0_brain
🛠 hammer_and_wrench working_on_it 1f6e0_hammerandwrench
💻 computer computer computer
🌐 globe_with_meridians www 1f310_globewithmeridians
✅ white_check_mark check 2705_whiteheavycheckmark
❌ x cross_mark 274c_crossmark
⏳ hourglass_flowing_sand time_ticking holdon
⚠ warning warning 26a0_warningsign
🗜 compression compression 1f5dc_compression
🎧 headphones headphones headphone
👌 ok_hand ok ok
👎 -1 -1 no
😢 cry cry cry
⌛ hourglass times_up holdon
🙏 pray pray praying
👏 clap clap clappinghands
👋 wave wave 1f44b_wavinghand
💪 muscle muscle muscle
🤝 handshake handshake handshake
🙌 raised_hands raised_hands handsinair
🙋 raising_hand raising_hand happy_person_raising_one_hand
🤷 shrug shrug -
🤞 crossed_fingers fingers_crossed crossedfingers
✋ hand hand 270b_raisedhand
❤ heart heart heart
💔 broken_heart broken_heart brokenheart
💯 100 100 1f4af_hundredpointssymbol
🎉 tada tada 1f389_partypopper
🏆 trophy trophy trophy
🎯 dart direct_hit target
🚀 rocket rocket launch
🤖 robot_face robot smilerobot
🙂 slightly_smiling_face smile smile
😊 blush blush smileeyes
😅 sweat_smile sweat_smile sweatgrinning
🤣 rolling_on_the_floor_laughing rolling_on_the_floor_laughing rofl
😎 sunglasses sunglasses cool
🤓 nerd_face nerd nerdy
🤗 hugging_face hug 1f917_huggingface
🫡 saluting_face saluting_face salute
🤩 star-struck star_struck stareyes
🥳 partying_face partying_face party
😇 innocent innocent angel
🧐 face_with_monocle face_with_monocle 1f9d0_facewithmonocle
🤨 face_with_raised_eyebrow face_with_raised_eyebrow wonder
😐 neutral_face neutral speechless
😕 confused oh_no confused
😞 disappointed disappointed disappointed
😭 sob sob loudlycrying
😡 rage rage angryface
🤯 exploding_head exploding_head 1f92f_explodinghead
😴 sleeping sleeping sleepingface
💤 zzz zzz 1f4a4_zzz
💀 skull skull skull
👻 ghost ghost ghost
🙈 see_no_evil see_no_evil seenoevil
💬 speech_balloon umm speechbubble
💭 thought_balloon thought 1f4ad_thoughtballoon
💡 bulb light_bulb 1f4a1_electriclightbulb
🔍 mag search 1f50d_magnifiertiltedleft
🔎 mag_right - 1f50e_magnifiertiltedright
📝 memo memo 1f4dd_memo
✏ pencil2 pencil 270f_pencil
📚 books books 1f4da_books
📖 book book 1f4d6_openbook
📌 pushpin push_pin 1f4cc_pushpin
📎 paperclip paperclip 1f4ce_paperclip
📦 package package 1f4e6_package
📤 outbox_tray outbox 1f4e4_outboxtray
📥 inbox_tray inbox 1f4e5_inboxtray
💾 floppy_disk floppy_disk 1f4be_floppydisk
📊 bar_chart bar_chart 1f4ca_barchart
📈 chart_with_upwards_trend chart 1f4c8_chartwithupwardstrend
🎨 art art 1f3a8_artistpalette
🔧 wrench fixing 1f527_wrench
🔨 hammer hammer 1f528_hammer
⚙ gear gear 2699_gear
🔗 link link 1f517_linksymbol
🔒 lock locked 1f512_locked
🔔 bell notifications bell
🗑 wastebasket wastebasket 1f5d1_wastebasket
🧪 test_tube test_tube 1f9ea_testtube
🐛 bug bug -
☕ coffee coffee -
⏰ alarm_clock alarm_clock -
⏱ stopwatch stopwatch -
⭐ star star -
🌟 star2 glowing_star -
✨ sparkles sparkles 2728_sparkles
🟢 large_green_circle - 1f7e2_greencircle
🟡 large_yellow_circle - 1f7e1_yellowcircle
🔴 red_circle red_circle 1f534_largeredcircle
🔵 large_blue_circle blue_circle 1f535_largebluecircle
🛑 octagonal_sign stop_sign -
⛔ no_entry no_entry 26d4_noentry
🚫 no_entry_sign prohibited 1f6ab_noentrysign
❓ question question 2753_blackquestionmarkornament
❗ exclamation exclamation 2757_heavyexclamationmarksymbol
✔ heavy_check_mark check_mark 2714_heavycheckmark
✖ heavy_multiplication_x multiplication 2716_heavymultiplicationx
▶ arrow_forward play 25b6_blackrightpointingtriangle
⏸ double_vertical_bar pause 23f8_doubleverticalbar
⏹ black_square_for_stop stop_button 23f9_blacksquareforstop
🔁 repeat repeat 1f501_repeat
🔄 arrows_counterclockwise counterclockwise 1f504_refresh
♻ recycle recycle recycle
"""

_TABLE: Final = tuple(row.split() for row in _ROWS.strip().splitlines())


def _column(number: int) -> Mapping[str, str]:
    return MappingProxyType({row[0]: row[number] for row in _TABLE if row[number] != "-"})


SHORT: Final = _column(1)
"""Short names by emoji without U+FE0F: Slack, Mattermost."""
ZULIP: Final = _column(2)
TEAMS: Final = _column(3)


def named(emoji: str, names: Mapping[str, str]) -> str:
    """The name of ``emoji``, or what stands between its colons, or itself: then it should be a name already."""
    return names.get(bare(emoji)) or emoji.strip(":")
