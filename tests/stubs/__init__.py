"""Chat services small enough to be understood at a glance, for the examples of `examples/`: one person writes one message,
the bot answers. They speak just enough of each platform for its official Python client. Need aiohttp (the extra ``sdk``).
"""
