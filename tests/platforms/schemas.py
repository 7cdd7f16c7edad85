"""JSON schemas and path patterns made from the publishers' specifications in `specs`."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import yaml

SPECS = Path(__file__).parent / "specs"
_SCALARS = {"Integer": "integer", "String": "string", "Boolean": "boolean"}


@cache
def telegram() -> dict[str, Any]:
    """The Bot API's calls and types."""
    loaded: dict[str, Any] = json.loads((SPECS / "telegram-bot-api.json").read_text("utf-8"))
    return loaded


def check_telegram(method: str, body: dict[str, Any]) -> None:
    """Raises jsonschema.ValidationError when ``body`` is not a call of ``method``."""
    jsonschema.validate(body, _object(telegram()["methods"][method]["fields"]))


def telegram_emojis() -> set[str]:
    """The emojis the Bot API lists."""
    (field,) = [f for f in telegram()["types"]["ReactionTypeEmoji"]["fields"] if f["name"] == "emoji"]
    return set(field["values"])


def _object(fields: list[dict[str, Any]]) -> dict[str, Any]:
    properties = {f["name"]: _any_of(f) for f in fields}
    required = [f["name"] for f in fields if f["required"]]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _any_of(field: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {"anyOf": [_type(name) for name in field["types"]]}
    if "values" in field:
        schema["enum"] = field["values"]
    return schema


def _type(name: str) -> dict[str, Any]:
    if name in _SCALARS:
        return {"type": _SCALARS[name]}
    if name.startswith("Array of "):
        return {"type": "array", "items": _type(name.removeprefix("Array of "))}
    described = telegram()["types"][name]
    if "subtypes" in described:
        return {"oneOf": [_type(each) for each in described["subtypes"]]}
    return _object(described["fields"])


class MatrixCall:
    """One operation of the client-server API."""

    def __init__(self, file: str, path: str) -> None:
        document = yaml.safe_load((SPECS / file).read_text("utf-8"))
        operation = document["paths"][path]["put"]
        self.base: str = document["servers"][0]["variables"]["basePath"]["default"]
        self._path = path
        self._parameters = {each["name"]: each["schema"] for each in operation["parameters"]}
        self._body = operation["requestBody"]["content"]["application/json"]["schema"]

    def check(self, target: str, body: bytes) -> dict[str, str]:
        """Check a PUT of ``body`` to ``target``. Returns the path's parameters, decoded. Raises
        AssertionError or jsonschema.ValidationError."""
        pattern = self.base + re.sub(r"\{(\w+)\}", r"(?P<\1>[^/?#]+)", self._path)
        found = re.fullmatch(pattern, target)
        assert found is not None, f"{target} is not {self._path}"
        values = {name: unquote(value) for name, value in found.groupdict().items()}
        for name, schema in self._parameters.items():
            jsonschema.validate(values[name], {k: v for k, v in schema.items() if k != "format"})
        jsonschema.validate(json.loads(body), self._body)
        return values


@cache
def matrix_send() -> MatrixCall:
    """Send an event to a room."""
    return MatrixCall("matrix-room-send.yaml", "/rooms/{roomId}/send/{eventType}/{txnId}")


@cache
def matrix_redact() -> MatrixCall:
    """Redact an event."""
    return MatrixCall("matrix-redaction.yaml", "/rooms/{roomId}/redact/{eventId}/{txnId}")


@cache
def matrix_typing() -> MatrixCall:
    """Start or stop typing."""
    return MatrixCall("matrix-typing.yaml", "/rooms/{roomId}/typing/{userId}")


class DiscordApi:
    """The calls of Discord's OpenAPI document that livesign makes."""

    def __init__(self) -> None:
        self._document: dict[str, Any] = json.loads((SPECS / "discord-rest.json").read_text("utf-8"))

    def check_request(self, method: str, target: str) -> None:
        """Raises AssertionError or jsonschema.ValidationError when this is no call of the API without a body."""
        values, path = self._find(target)
        operation = path[method.lower()]
        assert "requestBody" not in operation
        for parameter in path["parameters"]:
            self._validate(values[parameter["name"]], parameter["schema"])

    def check_answer(self, method: str, target: str, status: int, body: Any) -> None:
        """Raises when the API does not answer the call like this."""
        _, path = self._find(target)
        answers = path[method.lower()]["responses"]
        found = answers.get(str(status)) or answers[f"{status // 100}XX"]
        while "$ref" in found:
            found = self._at(found["$ref"])
        if "content" in found:
            self._validate(body, found["content"]["application/json"]["schema"])
        else:
            assert body is None

    def _find(self, target: str) -> tuple[dict[str, str], dict[str, Any]]:
        for path, described in self._document["paths"].items():
            found = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/?#]+)", path), target)
            if found is not None:
                return {name: unquote(value) for name, value in found.groupdict().items()}, described
        raise AssertionError(f"{target} is no path of the API")

    def _at(self, reference: str) -> Any:
        found: Any = self._document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
        return found

    def _validate(self, value: Any, schema: dict[str, Any]) -> None:
        jsonschema.validate(value, {**schema, "components": self._document["components"]})


@cache
def discord() -> DiscordApi:
    """Discord's REST API."""
    return DiscordApi()


class SlackApi:
    """The methods of Slack's Web API that its published document knows."""

    def __init__(self) -> None:
        self._document: dict[str, Any] = json.loads((SPECS / "slack-reactions.json").read_text("utf-8"))

    def check_request(self, target: str, body: dict[str, Any]) -> None:
        """Raises AssertionError or jsonschema.ValidationError when ``body`` is no POST to ``target``."""
        fields = [each for each in self._document["paths"][target]["post"]["parameters"] if each["in"] == "formData"]
        schema = {
            "type": "object",
            "properties": {each["name"]: {"type": each["type"]} for each in fields},
            "required": [each["name"] for each in fields if each.get("required")],
            "additionalProperties": False,
        }
        jsonschema.validate(body, schema)

    def errors(self, target: str) -> list[str]:
        """The errors that the document names for this method."""
        schema = self._document["paths"][target]["post"]["responses"]["default"]["schema"]
        found: list[str] = schema["properties"]["error"]["enum"]
        return found

    def check_answer(self, target: str, body: dict[str, Any]) -> None:
        """Raises when the method does not answer like this."""
        responses = self._document["paths"][target]["post"]["responses"]
        schema = responses["200" if body.get("ok") else "default"]["schema"]
        jsonschema.validate(body, {**schema, "definitions": self._document["definitions"]})


@cache
def slack() -> SlackApi:
    """Slack's Web API."""
    return SlackApi()
