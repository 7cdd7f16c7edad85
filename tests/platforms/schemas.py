"""What platforms document of the calls that are made (`specs`), to check requests and answers with."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import jsonschema
import yaml

from actors.platforms.spec import Request

SPECS = Path(__file__).parent / "specs"


@dataclass(frozen=True)
class Call:
    """One documented call. See ``specs/README.md``."""

    name: str
    described: Mapping[str, Any]

    @property
    def method(self) -> str:
        method: str = self.described["call"].partition(" ")[0]
        return method

    def match(self, path: str) -> dict[str, str] | None:
        """The segments of ``path`` by name, decoded; None: it is not the path of this call."""
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/?#]+)", re.escape(self.described["call"].partition(" ")[2]))
        found = re.fullmatch(pattern, path)
        return None if found is None else {name: unquote(value) for name, value in found.groupdict().items()}

    def check(self, request: Request, segments: Mapping[str, str]) -> None:
        """Raises AssertionError or jsonschema.ValidationError when ``request`` is not what is documented."""
        described = self.described
        assert segments.keys() == described.get("path", {}).keys()
        for name, pattern in described.get("path", {}).items():
            assert re.search(pattern, segments[name]), f"{name} is {segments[name]!r}"
        headers = {name.lower(): value for name, value in request.headers}
        for name, pattern in described.get("headers", {}).items():
            assert re.search(pattern, headers[name]), f"{name} is not {pattern}"
        query = dict(parse_qsl(urlsplit(request.path).query, keep_blank_values=True, strict_parsing=True))
        jsonschema.validate(query, described.get("query", {"maxProperties": 0}))
        self._check_body(request.body, headers.get("content-type", ""))
        assert re.search(described.get("server", "^$"), request.server or "")

    def _check_body(self, body: bytes, content_type: str) -> None:
        kind = content_type.partition(";")[0]
        if "json" in self.described:
            assert kind == "application/json"
            jsonschema.validate(json.loads(body), self.described["json"])
        elif "form" in self.described:
            assert kind == "application/x-www-form-urlencoded"
            form = dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, strict_parsing=True))
            jsonschema.validate(form, self.described["form"])
        else:
            assert (kind, body) == ("", b"")

    def check_answer(self, status: int, body: Any) -> None:
        """Raises when the platform does not answer the call like this. ``body`` None: there is none."""
        answers = self.described["answers"]
        schema = answers.get(status) or answers[f"{status // 100}XX"]
        if schema == "none":
            assert body is None
        else:
            jsonschema.validate(body, schema)

    def errors(self) -> list[str]:
        """The errors that are documented (Slack)."""
        refusal = self.described["answers"][200]["oneOf"][1]
        found: list[str] = refusal["properties"]["error"]["enum"]
        return found


class Api:
    """The documented calls of one platform."""

    def __init__(self, platform: str) -> None:
        loaded = yaml.safe_load((SPECS / f"{platform}.yaml").read_text("utf-8"))
        self.calls = {name: Call(name, described) for name, described in loaded["calls"].items()}

    def check(self, request: Request) -> tuple[str, dict[str, str]]:
        """Which call ``request`` is, and the segments of its path, decoded. Raises when it is none."""
        for call in self.calls.values():
            segments = call.match(urlsplit(request.path).path)
            if call.method == request.method and segments is not None:
                call.check(request, segments)
                return call.name, segments
        raise AssertionError(f"{request.method} {request.path} is no documented call")


@cache
def api(platform: str) -> Api:
    """The calls of ``platform``."""
    return Api(platform)


def telegram_emojis() -> set[str]:
    """The emojis the Bot API lists."""
    reaction = api("telegram").calls["set"].described["json"]["properties"]["reaction"]["items"]
    return set(reaction["properties"]["emoji"]["enum"])
