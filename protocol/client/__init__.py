"""Clients for Python: `Client` blocks, `AsyncClient` is for asyncio. Both reconnect, and send again what was not
acknowledged."""

from protocol.client.aio import AsyncClient
from protocol.client.blocking import Client

__all__ = ["AsyncClient", "Client"]
