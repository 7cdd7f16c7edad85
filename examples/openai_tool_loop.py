"""The usual loop of an agent: ask the model, run the tools it wants, ask again. Tools become marks.

The model here is a fake with the interface of the ``openai`` package, so it runs as it stands:

    pip install .
    python examples/openai_tool_loop.py

With the real one, put ``openai.OpenAI()`` in the place of ``FakeOpenAI()``.
"""

import json
import time
from types import SimpleNamespace as Thing
from typing import Any

from actors import PresenceSupervisor, RunHandle


class FakeOpenAI:
    """Wants two tools, one after the other, then answers."""

    def __init__(self) -> None:
        self.chat = Thing(completions=self)
        self._wants = ["web_search", "apply_patch"]

    def create(self, *, messages: list[Any], **_: Any) -> Any:
        time.sleep(1)  # it thinks
        if not self._wants:
            return Thing(choices=[Thing(message=Thing(content="42", tool_calls=None))])
        call = Thing(id=f"c{len(messages)}", function=Thing(name=self._wants.pop(0), arguments='{"q": "answer"}'))
        return Thing(choices=[Thing(message=Thing(content=None, tool_calls=[call]))])


def run_tool(name: str, arguments: dict[str, Any]) -> str:
    time.sleep(1)
    return f"{name} has found something"


def agent(client: Any, run: RunHandle, question: str) -> str:
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        run.thinking()
        reply = client.chat.completions.create(model="gpt-4.1", messages=messages).choices[0].message
        if not reply.tool_calls:
            return str(reply.content)
        messages.append(reply)
        for call in reply.tool_calls:
            with run.tool(call.function.name):
                result = run_tool(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


with PresenceSupervisor.start({"ack": {"scope": "all"}, "ledger": {"path": ":memory:"}}) as presence:
    print("watch it at", *presence.addresses.values())
    with presence.run(conversation="chat", message=817, direct=True) as run:
        print("answer:", agent(FakeOpenAI(), run, "what is the answer?"))
    print("shown at the end:", run.outcome().mark)
