"""The whole decision logic as pure machines: no actors, no I/O, no clock; time is an argument (``now_ms``).

A machine takes events (`protocol.events`) and the present time and returns effects (`terms`). Reading order:
``terms`` (vocabulary), ``policy`` (settings a run keeps), ``ack`` and ``tools`` (two small decisions), ``runs``
(who is open, who has ended), ``reaction`` and ``typing`` (what should show), ``mark_lane`` and ``typing_lane`` (which
call brings the platform there), ``lanes`` and ``pacing`` (which call goes first, and when it may).
"""
