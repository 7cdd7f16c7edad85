"""A bot on gevent, whose hub livesign shares, on the chat service that comes with livesign: no account needed.

pip install .
python examples/gevent_bot.py
"""

from gevent import monkey

monkey.patch_all()

import time  # noqa: E402

import gevent  # noqa: E402

from actors import PresenceSupervisor  # noqa: E402

CONFIG = {"ack": {"scope": "all"}, "ledger": {"path": ":memory:"}}


def answer(presence: PresenceSupervisor, chat: int) -> str:
    with presence.run(conversation=chat, message=817, direct=True) as run:
        run.thinking()
        time.sleep(1)  # patched: other greenlets go on
        with run.tool("apply_patch"):
            time.sleep(1)
    outcome = run.outcome()
    return f"chat {chat}: {outcome.outcome} {outcome.mark or outcome.problem}"


with PresenceSupervisor.start(CONFIG) as presence:
    print("watch it at", *presence.addresses.values())
    bots = [gevent.spawn(answer, presence, chat) for chat in range(3)]
    impatient = gevent.spawn(answer, presence, 3)
    gevent.sleep(1.2)
    impatient.kill()  # called off: its marks are taken off
    for bot in bots:
        print(bot.get())
