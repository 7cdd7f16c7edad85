"""Load: very many live conversations on one server, against a sandbox that limits and fails.

``python -m tests.load`` is the long form: 100,000 conversations for ten minutes. `tests.load.test_load` is the short one.
Real processes, sockets and time: ``livesign serve`` in a process of its own, the sandbox and the clients in this one.

`plan` says how large it is and what the platforms are like, `crowd` plays the bots, `judge` watches what the sandbox sees and
knows nothing of how livesign works, `measure` puts them together.
"""
