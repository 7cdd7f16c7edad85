"""A bot with plain threads, on the chat service that comes with livesign: no account needed.

    pip install .
    python examples/threaded_bot.py

It prints an address: open it in a browser and watch.
"""

import time
from concurrent.futures import ThreadPoolExecutor

from actors import PresenceSupervisor, current_run

CONFIG = {"ack": {"scope": "all"}, "ledger": {"path": ":memory:"}}


def look_up(question: str) -> str:
    run = current_run()  # whoever called this has a run
    assert run is not None
    with run.tool("web_search"):
        time.sleep(1)
        if "broken" in question:
            raise LookupError(question)
        return "42"


with PresenceSupervisor.start(CONFIG) as presence:

    @presence.handler(lambda chat, message, question: {"conversation": chat, "message": message, "direct": True})
    def answer(chat: str, message: int, question: str) -> str:
        run = current_run()
        assert run is not None
        run.thinking()
        time.sleep(1)
        return look_up(question)

    print("watch it at", *presence.addresses.values())
    with ThreadPoolExecutor() as threads:
        jobs = [
            threads.submit(answer, f"chat-{n}", 817, "broken?" if n == 3 else "what is the answer?") for n in range(5)
        ]
        for job in jobs:
            print("failed:" if job.exception() else "answered:", job.exception() or job.result())
    time.sleep(0.5)  # long enough to see how it ended
    print(presence.stats()["runs_ended"], "runs")
