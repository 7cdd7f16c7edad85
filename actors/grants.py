"""What one client may do."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from actors.server_settings import TokenGrant

EVERYTHING = frozenset({"send", "execute", "subscribe"})


@dataclass(frozen=True, slots=True)
class Grant:
    """``principal`` tells whose it is, without telling the token."""

    principal: str
    accounts: frozenset[str] | None = None
    """None: all."""
    may: frozenset[str] = EVERYTHING

    def allows(self, account: str) -> bool:
        return self.accounts is None or account in self.accounts


def user_grant(uid: int | None) -> Grant:
    """The grant of a user of this machine that got in: everything."""
    return Grant("local" if uid is None else f"uid-{uid}")


def token_grant(token: str, known: Iterable[TokenGrant]) -> Grant | None:
    """The grant of ``token``; all known tokens are compared, in time that does not depend on them."""
    given = token.encode(errors="replace")
    found = None
    for entry in known:
        if hmac.compare_digest(given, entry.token.encode()) and entry.token:
            found = entry
    if found is None:
        return None
    digest = hashlib.blake2b(found.token.encode(), digest_size=6, person=b"livesign")
    return Grant(f"token-{digest.hexdigest()}", found.accounts, found.grants)
