"""A LangGraph agent whose tools and model calls become marks, by a LangChain callback handler. Its model is a fake.

pip install . langgraph
python examples/langgraph_agent.py
"""

import time
from collections.abc import Iterator
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph

from actors import PresenceSupervisor, RunHandle, ToolSpan


class Marks(BaseCallbackHandler):
    """Tells a run what the graph does; tools may run side by side."""

    def __init__(self, run: RunHandle, spans: dict[Any, ToolSpan]) -> None:
        self.run, self.spans = run, spans

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.run.thinking()

    def on_tool_start(self, serialized: Any, text: str, *, run_id: Any, **kwargs: Any) -> None:
        self.spans[run_id] = self.run.tool(serialized["name"])

    def on_tool_end(self, output: Any, *, run_id: Any, **kwargs: Any) -> None:
        self.spans.pop(run_id).end()


@tool
def web_search(query: str) -> str:
    """Look something up."""
    time.sleep(1)
    return "42"


def replies() -> Iterator[AIMessage]:
    for wants in ([{"name": "web_search", "args": {"query": "the answer"}, "id": "1"}], []):
        time.sleep(1)
        yield AIMessage("" if wants else "It is 42.", tool_calls=wants)


model = GenericFakeChatModel(messages=replies())
graph = StateGraph(MessagesState).add_edge(START, "model").add_edge("tools", "model")
graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
graph.add_node("tools", lambda state: {"messages": [web_search.invoke(c) for c in state["messages"][-1].tool_calls]})
graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
with PresenceSupervisor.start({"ack": {"scope": "all"}, "ledger": {"path": ":memory:"}}) as presence:
    print("watch it at", *presence.addresses.values())
    with presence.run(conversation="chat", message=817, direct=True) as run:
        answer = graph.compile().invoke({"messages": "what is the answer?"}, {"callbacks": [Marks(run, {})]})
        print("answer:", answer["messages"][-1].content)
    print("shown at the end:", run.outcome().mark)
