"""Chat platforms, each in one small file: what it is like (a frozen row), and how to speak to it (two pure
functions).

======================== ===================================================================================
`spec`                   the types: row, options, credentials, request, response, `HttpAdapter`
`registry`               which platforms there are
`telegram` `matrix` ...  one platform each
`answers`, `oauth`       what platforms have in common: bodies, Retry-After, status classes; access tokens
`emoji`, `emoji_names`   U+FE0F; names and ids of emojis
`transport`              HTTP over gevent, and the port it stands behind
`port`                   `PlatformPort`, through which an account's commands leave, and `HttpPlatform`
======================== ===================================================================================

**A new platform** is one file and one line. The file ``example.py``, complete::

    from actors.platforms.answers import bearer, by_status, json_object, segment, text_at
    from actors.platforms.spec import HttpAdapter, Option, PlatformSpec, Request
    from actors.presence.limits import Limit
    from actors.presence.terms import LaneRules, Op, Outcome, OutcomeKind

    class ExampleAdapter(HttpAdapter):
        spec = PlatformSpec(
            name="example", ids="room id; -; message id", base_url="https://api.example.org",
            rules=LaneRules(reactions="add_remove", typing_lifetime_ms=10_000, typing_in_threads=False),
            options=(Option("team", "the bot's team", required=True),), keepalive_ms=8_000,
            limits={"account": Limit(per_ms=1_000, count=50)},
            source="developers.example.org/reactions; keep-alive (R)",
        )

        def request(self, command, credentials):
            headers = (bearer(credentials.token),)
            room = f"/{segment(credentials.options['team'])}/{segment(command.conversation)}"
            if command.op is Op.TYPING_STOP:
                return Outcome(OutcomeKind.OK)  # it fades by itself
            if command.op is Op.TYPING_START:
                return Request("POST", f"{room}/typing", headers)
            mark = f"{segment(command.message or '')}/reactions/{segment(command.emoji or '')}"
            return Request("PUT" if command.op is Op.SET else "DELETE", f"{room}/{mark}", headers)

        def outcome(self, command, response):
            if text_at(json_object(response.body), "error") == "message_gone":
                return Outcome(OutcomeKind.GONE)
            return by_status(response)

The line, in `registry`: ``"example": _of("example.ExampleAdapter"),``. That is all: the configuration knows the
platform and its options, emojis are checked with `HttpAdapter.normalise`, lanes keep the row's rules and limits. Its
test is a table of golden pairs: one request for each op, one response for each documented error (`tests/platforms`).

Rules for adapters: no I/O, no clock, no state. The platform's own code decides first, then the HTTP status; a
text only where there is no code, in one table. What cannot be called is answered with an outcome in place of
a request. A success that cannot be read is UNKNOWN, never OK. No secret goes anywhere but into
``Request.path``, ``Request.headers`` and ``Request.body``.
"""
