"""The bot's own posts: what holds typing back, and what brings it back."""

from __future__ import annotations

from actors.presence.terms import OK, StopTyping, WithdrawTyping
from protocol import events
from tests.presence.typing_world import FAILED, TypingWorld, assert_at_rest

# --- posts of the bot --------------------------------------------------------------------------------------


def test_a_non_final_post_that_clears_typing_is_followed_by_a_start_and_a_new_cadence() -> None:
    world = (
        TypingWorld(keepalive_ms=4000).open().tell(5000, "m", events.Sent).tell(15_000, "m", events.Sent, final=True)
    )
    assert world.calls == [
        (0, "start"), (4000, "start"), (5000, "start"), (9000, "start"), (13_000, "start"), (15_000, "stop"),
    ]  # fmt: skip


def test_a_post_that_clears_nothing_changes_no_cadence() -> None:
    world = TypingWorld(post_clears=False).open().tell(4000, "m", events.Sending).tell(5000, "m", events.Sent)
    assert world.advance(9500).starts == [0, 3000, 6000, 9000]


def test_a_post_during_a_call_is_followed_by_one_more_call() -> None:
    world = TypingWorld()
    world.answers[1] = (800, OK)
    world.open().tell(3500, "m", events.Sent).advance(7000)
    assert world.starts == [0, 3000, 3800, 6800]


def test_a_post_after_a_trip_starts_nothing() -> None:
    world = TypingWorld(start_failures=1, probe_ms=0)
    world.answers[0] = (0, FAILED)
    assert world.open().tell(1000, "m", events.Sent).advance(9000).starts == [0]


def test_sending_holds_the_calls_back_until_sent() -> None:
    world = TypingWorld().open().tell(2500, "m", events.Sending).advance(5000)
    assert world.starts == [0]
    assert world.tell(5500, "m", events.Sent).advance(9000).starts == [0, 5500, 8500]


def test_sending_holds_the_first_call_back_too() -> None:
    world = TypingWorld(mode="message").open().tell(1000, "m", events.Sending).tell(1100, "m", events.Text)
    assert world.starts == []
    assert world.tell(1500, "m", events.Sent, ok=False).starts == [1500]


def test_a_post_that_failed_resumes_typing() -> None:
    world = TypingWorld().open().tell(2500, "m", events.Sending).tell(3500, "m", events.Sent, final=True, ok=False)
    world.tell(4000, "m", events.Done)
    assert world.calls == [(0, "start"), (3500, "start"), (4000, "stop")]


def test_a_failed_post_that_cost_no_tick_makes_no_call() -> None:
    world = TypingWorld().open().tell(1000, "m", events.Sending).tell(2000, "m", events.Sent, ok=False)
    assert world.advance(3000).starts == [0, 3000]


def test_sending_holds_for_10_s_at_most() -> None:
    world = TypingWorld().open().tell(2500, "m", events.Sending).advance(16_000)
    assert world.starts == [0, 12_500, 15_500]


def test_a_start_that_waits_when_sending_begins_is_withdrawn_and_made_up_for() -> None:
    world = TypingWorld()
    world.blocked = True
    world.open().tell(2500, "m", events.Sending).unblock(3000).advance(4000)
    assert world.calls == []
    assert world.tell(5000, "m", events.Sent).starts == [5000]


def test_a_final_post_ends_typing_for_the_run_whatever_follows() -> None:
    world = TypingWorld().open().tell(1000, "m", events.Sending).tell(2000, "m", events.Sent, final=True)
    world.tell(3000, "m", events.Text).tell(4000, "m", events.Thinking).advance(9000)
    assert world.calls == [(0, "start"), (2000, "stop")]
    assert world.tell(10_000, "m", events.TypingStart).starts == [0, 10_000]


def test_the_final_post_of_one_run_gives_typing_back_to_the_other() -> None:
    world = TypingWorld(keepalive_ms=4000).open(0, "a").open(500, "b")
    world.tell(5000, "a", events.Sent, final=True).tell(5010, "a", events.Done).tell(20_000, "b", events.Done)
    assert world.starts == [0, 4000, 5000, 9000, 13_000, 17_000]
    assert world.stops == [20_000]


def test_a_run_that_is_posting_does_not_hold_back_the_others() -> None:
    world = TypingWorld().open(0, "a").open(500, "b").tell(1000, "a", events.Sending).advance(6000)
    assert world.starts == [0, 3000, 6000]


def test_a_terminal_inside_sending_takes_effect_at_once_but_the_stop_waits_for_sent() -> None:
    world = TypingWorld().open().tell(1000, "m", events.Sending).tell(1500, "m", events.Done).advance(4000)
    assert world.calls == [(0, "start")]
    assert not world.machine.wanted
    assert not world.machine.idle
    assert world.tell(4500, "m", events.Sent, final=True).calls == [(0, "start"), (4500, "stop")]
    assert_at_rest(world)


def test_that_stop_waits_for_10_s_at_most() -> None:
    world = TypingWorld(ttl_ms=5000).open().tell(1000, "m", events.Sending).tell(1500, "m", events.Done)
    assert world.machine.deadlines == {"wishes": 11_000}
    assert world.advance(60_000).stops == [11_000]
    assert_at_rest(world)


def test_a_waiting_start_is_withdrawn_by_a_terminal_inside_sending() -> None:
    world = TypingWorld()
    world.blocked = True
    world.open().tell(1000, "m", events.Sending).tell(1500, "m", events.Done).unblock(2000).advance(20_000)
    assert world.calls == []
    assert_at_rest(world)


def test_a_waiting_start_of_a_later_run_is_withdrawn_while_that_post_goes_out() -> None:
    world = TypingWorld().open(0, "a").tell(1000, "a", events.Sending).tell(1500, "a", events.Done)
    world.blocked = True
    world.open(2000, "b").tell(2500, "b", events.Done).unblock(3000).advance(20_000)
    assert world.calls == [(0, "start"), (11_000, "stop")]
    assert_at_rest(world)


def test_the_ttl_of_a_later_run_is_noticed_while_that_post_goes_out() -> None:
    world = TypingWorld(keepalive_ms=2000, ttl_ms=5000).open(0, "a").tell(1000, "a", events.Sending)
    world.tell(1500, "a", events.Done).open(2000, "b").advance(20_000)
    assert world.calls == [(0, "start"), (2000, "start"), (4000, "start"), (6000, "start"), (11_000, "stop")]


def test_a_longest_hold_of_0_holds_nothing_back() -> None:
    world = TypingWorld(sending_max_ms=0)
    world.blocked = True
    assert world.open().tell(1000, "m", events.Sending).unblock(1500).starts == [1500]
    assert not any(isinstance(effect, WithdrawTyping) for effect in world.effects)


def test_a_new_run_takes_over_the_indicator_whose_stop_waits_and_gets_it_back_after_the_post() -> None:
    world = TypingWorld().open(0, "a").tell(1000, "a", events.Sending).tell(1500, "a", events.Done)
    world.open(2000, "b").tell(3000, "a", events.Sent).tell(4000, "b", events.Done)
    assert world.calls == [(0, "start"), (2000, "start"), (3000, "start"), (4000, "stop")]
    assert sum(isinstance(effect, StopTyping) for effect in world.effects) == 1
    assert_at_rest(world)
