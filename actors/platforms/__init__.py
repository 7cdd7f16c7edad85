"""Chat platforms, each in one small file: what it is like (a frozen row), and how to speak to it (two pure
functions).

======================== ===================================================================================
`spec`                   the types: row, credentials, request, response, `HttpAdapter`
`registry`               which platforms there are
`telegram` `matrix` ...  one platform each
`answers`, `oauth`       what platforms have in common: bodies, Retry-After, status classes; access tokens
`emoji`, `emoji_names`   U+FE0F; names and ids of emojis
`transport`              HTTP over gevent, and the port it stands behind
`port`                   `PlatformPort`, through which an account's commands leave, and `HttpPlatform`
======================== ===================================================================================

**A new platform** is one file and one line. The file, complete::

    SPEC = PlatformSpec(
        name="example",
        ids="room id; -; message id",
        rules=LaneRules(reactions="add_remove", typing_lifetime_ms=10_000, typing_in_threads=False),
        base_url="https://api.example.org",
        keepalive_ms=8_000,
        limits={"account": Limit(per_ms=1_000, count=50), "route.marks": Limit(per_ms=300, count=1)},
        source="developers.example.org/reactions; keep-alive (R)",
    )

    class ExampleAdapter(HttpAdapter):
        spec = SPEC

        def request(self, command, credentials):
            headers = (("Authorization", f"Bearer {credentials.token}"),)
            room = f"/v1/rooms/{segment(command.conversation)}"
            if command.op is Op.TYPING_START:
                return Request("POST", f"{room}/typing", headers)
            method = "PUT" if command.op is Op.SET else "DELETE"
            mark = f"messages/{segment(command.message or '')}/reactions/{segment(command.emoji or '')}"
            return Request(method, f"{room}/{mark}", headers)

        def outcome(self, command, response):
            if text_at(json_object(response.body), "error") == "message_gone":
                return Outcome(OutcomeKind.GONE)
            return by_status(response)

The line, in `registry`: ``"example": lambda options: ExampleAdapter(),``. Its test is a table of golden
pairs: one request for each op, one response for each documented error (`tests/platforms`).

Rules for adapters: no I/O, no clock, no state. The platform's own code decides first, then the HTTP status; a
text only where there is no code, in one table. What cannot be called is answered with an outcome in place of
a request. A success that cannot be read is UNKNOWN, never OK. No secret goes anywhere but into
``Request.path``, ``Request.headers`` and ``Request.body``.
"""
