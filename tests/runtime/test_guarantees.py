"""Every sentence on the runtime's page of guarantees has a test, and here is which."""

from __future__ import annotations

import importlib
import re

import actors.runtime

PROOFS: dict[str, tuple[str, ...]] = {
    "``Actor`` (multiplexed) and ``GreenletActor`` are pykka actors": (
        "actor: test_a_proxy_calls_reads_and_writes",
        "actor: test_stop_keeps_its_place_in_the_queue",
        "threads: test_pykkas_own_start_uses_a_default_runtime_and_pykkas_registry",
    ),
    "An actor handles one message at a time": (
        "actor: test_messages_are_handled_in_the_order_of_one_sender_after_on_start",
        "actor: test_a_greenlet_actor_handles_its_messages_one_at_a_time_and_in_order",
        "threads: test_no_message_is_lost_and_each_senders_order_holds",
    ),
    "A multiplexed actor that tries to wait gets": (
        "actor: test_waiting_inside_a_multiplexed_handler_is_refused_with_advice",
        "actor: test_blocking_gevent_calls_in_a_multiplexed_handler_get_the_same_error",
    ),
    "A greenlet actor may wait in its handler.": ("actor: test_a_greenlet_actor_may_wait_in_its_handler",),
    "Whoever holds the hub is reported": (
        "watchdog: test_whoever_holds_the_hub_is_reported_once_with_its_stack",
        "watchdog: test_an_idle_or_busy_runtime_is_left_alone",
    ),
    "An actor waits for a future with ``pipe``": (
        "pipe: test_a_piped_answer_comes_as_a_message",
        "pipe: test_a_piped_answer_that_does_not_come_in_time_is_a_timeout_and_later_ignored",
    ),
    "The mailbox is the identity": (
        "supervisor: test_a_failed_child_is_restarted_behind_the_same_ref_and_its_queue_lives_on",
    ),
    "The system lane goes before the user lane": ("mailbox: test_the_system_lane_overtakes_a_backlog",),
    "Putting never waits.": (
        "mailbox: test_a_full_lane_rejects_and_counts",
        "mailbox: test_a_full_lane_rejects_an_ask_at_once",
    ),
    "The user lane is bounded by": (
        "mailbox: test_a_full_lane_rejects_and_counts",
        "mailbox: test_a_flood_from_another_thread_counts_against_the_same_bound",
        "threads: test_a_flood_from_threads_is_bounded",
    ),
    "What a full lane does is the actor's declared": (
        "mailbox: test_drop_oldest_gives_up_the_oldest_droppable_message",
        "mailbox: test_coalesce_keeps_the_place_of_the_first_and_the_content_of_the_last",
    ),
    "Ticks, piped answers, notices": (
        "timers: test_ticks_pass_a_full_mailbox",
        "mailbox: test_a_stop_passes_a_full_lane",
        "mailbox: test_answers_and_notices_pass_a_full_lane",
    ),
    "An idle actor owns no lane": ("mailbox: test_an_idle_mailbox_owns_no_lane",),
    "``tell``, ``ask``, ``spawn``, ``stop`` and ``Future.get`` work from any thread": (
        "threads: test_asks_from_many_threads_all_get_their_own_answer",
        "threads: test_actors_can_be_started_and_stopped_from_many_threads",
        "future: test_it_wakes_threads_greenlets_of_other_hubs_and_asyncio_tasks_alike",
        "future: test_await_leaves_the_loop_free_also_for_derived_and_stop_futures",
    ),
    "``tell`` from signal handlers and finalizers": (
        "processes: test_signal_handlers_on_the_runtimes_own_thread_lose_nothing",
        "processes: test_finalizers_lose_nothing",
    ),
    "Nothing is monkey-patched": ("processes: test_it_works_in_a_patched_and_in_an_unpatched_process",),
    "Two runtimes in one process share nothing.": (
        "observe: test_two_runtimes_share_nothing",
        "threads: test_two_hubs_in_two_threads_do_not_meet",
    ),
    "Both drivers do the same": ("scheduler: test_both_drivers_do_the_same_with_the_same_script",),
    "A flooded actor delays another by one turn.": ("scheduler: test_a_flooded_actor_delays_another_by_one_turn",),
    "Sockets are served": (
        "hub_driver: test_sockets_are_served_while_an_actor_is_flooded",
        "hub_driver: test_other_threads_get_their_share_of_the_interpreter_in_a_flood",
    ),
    "The manual driver refuses": (
        "actor: test_the_manual_driver_refuses_greenlet_actors",
        "scheduler: test_the_manual_driver_reports_a_deadlock_and_moves_no_time",
        "scheduler: test_the_manual_driver_reports_actors_that_never_rest",
    ),
    "A timer is never early.": (
        "timers: test_a_scheduled_message_comes_at_its_time_and_not_before",
        "hub_driver: test_no_timer_is_early_and_most_are_on_time",
        "hub_driver: test_a_timer_armed_by_a_busy_greenlet_is_not_early",
    ),
    "A key has one timer": ("timers: test_a_key_has_one_timer_and_starting_it_again_replaces_it",),
    "After cancel, replace, restart and stop": (
        "timers: test_a_tick_in_the_mailbox_is_dead_after_cancel",
        "timers: test_a_tick_in_the_mailbox_is_dead_after_its_key_was_started_again",
        "timers: test_a_stopped_actor_has_no_timer_and_gets_no_tick",
        "children: test_timers_watches_and_pipes_die_with_their_instance",
    ),
    "A missed interval fires once.": ("timers: test_after_a_long_gap_an_interval_fires_once",),
    "Setting the system's clock": ("timers: test_a_jump_of_the_wall_clock_moves_no_timer",),
    "Moving a deadline later": (
        "timer_queue: test_a_timer_moved_later_waits_at_its_old_place_and_fires_at_its_new_time",
        "timer_queue: test_cancelled_timers_are_reclaimed_without_waiting_for_their_time",
    ),
    "Who comes back and who comes along": (
        "supervision: test_the_table_in_the_source_is_the_rule_and_is_complete",
        "supervision: test_who_comes_along",
        "supervisor: test_who_comes_back",
        "supervisor: test_companions_stop_newest_first_and_start_oldest_first_with_their_queues",
    ),
    "The message that failed does not come back.": ("supervisor: test_the_message_that_failed_does_not_come_back",),
    "Timers, watches and pipes die": (
        "children: test_timers_watches_and_pipes_die_with_their_instance",
        "supervisor: test_every_instance_gets_the_same_objects_so_state_owned_above_survives",
    ),
    "An exception in an ask": ("actor: test_an_exception_in_an_ask_goes_to_the_asker_and_is_no_failure",),
    "A failure in ``on_start`` counts": (
        "supervisor: test_a_child_that_fails_in_on_start_is_restarted_with_back_off_like_any_other",
        "actor: test_a_failure_inside_a_hook_ends_the_actor_and_nothing_else",
    ),
    "A stray ``gevent.Timeout``": (
        "stop: test_a_stray_timeout_or_kill_fails_one_actor_and_no_other",
        "stubborn: test_an_idle_greenlet_that_is_killed_from_outside_is_a_failed_actor",
        "stubborn: test_a_greenlet_killed_before_its_first_step_is_noticed",
    ),
    "``KeyboardInterrupt`` and ``SystemExit``": (
        "stop: test_an_interrupt_in_a_handler_asks_the_runtime_to_stop",
        "processes: test_control_c_stops_a_busy_runtime_and_comes_out_of_wait",
    ),
    "A supervisor fails when its budget is spent": (
        "escalation: test_a_spent_supervisor_budget_fails_the_supervisor_and_ends_its_children",
        "escalation: test_a_parent_of_many_bears_single_failures_without_end",
        "escalation: test_a_parent_of_many_fails_when_more_than_a_twentieth_failed_at_once",
    ),
    "A child's own budget": ("escalation: test_a_childs_own_budget_gives_up_on_that_child_only",),
    "Restarts back off": (
        "supervisor: test_back_off_doubles_and_begins_anew_after_quiet",
        "supervision: test_back_off_doubles_up_to_its_maximum_give_or_take_the_jitter",
    ),
    "A supervisor's own failure": (
        "escalation: test_an_exception_in_a_hook_is_a_failure_of_the_supervisor",
        "escalation: test_escalation_restarts_the_supervisor_and_its_on_start_brings_the_children_back",
    ),
    "``ref.stop()`` keeps its place": (
        "actor: test_stop_keeps_its_place_in_the_queue",
        "mailbox: test_the_system_lane_overtakes_a_backlog",
    ),
    "Children end before their parents": (
        "stop: test_children_stop_before_their_parents_and_the_newest_first",
        "stop: test_shutdown_stops_the_last_started_first",
        "stop: test_greenlet_actors_stop_in_the_same_order",
    ),
    "Stopping is bounded": (
        "stubborn: test_a_blocked_greenlet_actor_is_killed_at_the_deadline",
        "stubborn: test_one_that_survives_its_kill_is_left_behind_and_its_asker_answered",
        "stubborn: test_many_blocked_greenlets_below_one_parent_share_the_deadline",
    ),
    "Every waiting asker is answered.": (
        "stop: test_every_asker_is_answered_when_the_runtime_stops",
        "stop: test_a_stopped_runtime_takes_no_actors_and_answers_everybody",
        "actor: test_what_waits_behind_a_stop_is_answered_and_never_handled",
    ),
    "When a stop is answered": (
        "actor: test_the_stopped_flag_waits_until_on_stop_has_run",
        "timers: test_a_stopped_actor_has_no_timer_and_gets_no_tick",
        "watch: test_a_key_names_one_live_actor_and_is_free_when_it_has_ended",
    ),
    "Stopping works twice": (
        "stop: test_stopping_twice_is_stopping_once",
        "stubborn: test_stopping_under_load_is_bounded",
        "stop: test_an_actor_stopped_before_it_started_never_starts",
        "processes: test_a_signal_handler_can_stop_a_busy_runtime",
    ),
    "What has stopped is freed": ("observe: test_what_has_stopped_is_freed_without_the_garbage_collector",),
    "``lookup`` finds": ("watch: test_a_key_names_one_live_actor_and_is_free_when_it_has_ended",),
    "A watcher gets ``Terminated`` once": (
        "watch: test_a_watcher_is_told_once_and_after_everything_the_actor_told_it",
    ),
    "Dead letters are counted": (
        "watch: test_dead_letters_are_counted_and_told_to_subscribers",
        "watch: test_a_flood_of_dead_letters_is_a_trickle_in_the_log",
    ),
    "An idle actor can go away": (
        "passivation: test_an_idle_actor_can_go_away_and_comes_back_by_its_key",
        "passivation: test_an_actor_with_something_waiting_does_not_go_away",
    ),
    "``snapshot`` shows the tree": ("observe: test_the_snapshot_is_the_tree_with_state_depth_restarts_and_timers",),
    "A mailbox that grows deep": ("mailbox: test_a_deep_mailbox_is_named_in_the_log_once",),
}


def sentences() -> list[str]:
    """The page's guarantees: one per bullet."""
    page = actors.runtime.__doc__ or ""
    return [
        " ".join(bullet.split()) for bullet in re.findall(r"^- (.+?)(?=\n\n|\n- |\Z)", page, re.DOTALL | re.MULTILINE)
    ]


def test_every_guarantee_names_its_tests() -> None:
    found = sentences()
    assert len(found) > 40
    for sentence in found:
        assert sum(sentence.startswith(opening) for opening in PROOFS) == 1, sentence
    for opening in PROOFS:
        assert any(sentence.startswith(opening) for sentence in found), opening


def test_the_named_tests_are_there() -> None:
    for proofs in PROOFS.values():
        for proof in proofs:
            module, name = proof.split(": ")
            assert callable(getattr(importlib.import_module(f"tests.runtime.test_{module}"), name, None)), proof
