"""A LangGraph agent whose tools and model calls become marks, by a LangChain callback handler.

    pip install livesign langgraph
    python examples/langgraph_agent.py

The model is a fake; any LangChain chat model takes its place.
"""

import time
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph

from actors import PresenceSupervisor, RunHandle, ToolSpan


class Marks(BaseCallbackHandler):
    """Tells a run what the graph does; tools may run side by side."""

    def __init__(self, run: RunHandle) -> None:
        self.run, self.spans = run, dict[UUID, ToolSpan]()

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.run.thinking()

    def on_tool_start(self, serialized: dict[str, Any], input_str: str, *, run_id: UUID, **kwargs: Any) -> None:
        self.spans[run_id] = self.run.tool(serialized["name"])

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.spans.pop(run_id).end()


@tool
def web_search(query: str) -> str:
    """Look something up."""
    time.sleep(1)
    return "42"


wants = AIMessage("", tool_calls=[{"name": "web_search", "args": {"query": "the answer"}, "id": "1"}])
model = GenericFakeChatModel(messages=iter([wants, AIMessage("It is 42.")]))
graph = StateGraph(MessagesState)
graph.add_node("model", lambda state: time.sleep(1) or {"messages": [model.invoke(state["messages"])]})
graph.add_node("tools", lambda state: {"messages": [web_search.invoke(c) for c in state["messages"][-1].tool_calls]})
graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
graph.add_edge(START, "model")
graph.add_edge("tools", "model")

with PresenceSupervisor.start({"ack": {"scope": "all"}, "ledger": {"path": ":memory:"}}) as presence:
    print("watch it at", *presence.addresses.values())
    with presence.run(conversation="chat", message=817, direct=True) as run:
        asked = {"messages": [HumanMessage("what is the answer?")]}
        print("answer:", graph.compile().invoke(asked, {"callbacks": [Marks(run)]})["messages"][-1].content)
    print("shown at the end:", run.outcome().mark)
