"""From a merged layer to the `Policy` a run opens with: platform defaults, and what must fit together.

Every rule that concerns more than one value is here. A broken one is reported, and the value is mended as
well, so that two ``[[match]]`` blocks that only meet at run time still give a policy that works:

- debounce below the first stall, the soft stall below the hard one;
- keepalive under the platform's own typing lifetime (above it where a refresh within it does nothing), TTL at least
  two keepalives (raised with a warning);
- a lease or a longest run time, never neither;
- done and error look different, every tool category can match something, shown states exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from actors.config_emoji import emoji_chains
from actors.config_problems import Report
from actors.config_tree import Setting, value_of
from actors.config_values import ENDS, quoted
from actors.platforms.spec import HttpAdapter, PlatformSpec
from actors.presence.policy import (
    STATES,
    AckSettings,
    LeaseSettings,
    Policy,
    StatusSettings,
    ToolCategory,
    TypingSettings,
)
from actors.presence.tools import DEFAULT_CATEGORIES

Merged = Mapping[str, Setting]
_BUILT_IN = tuple(category.name for category in DEFAULT_CATEGORIES)


def build_policy(layer: Merged, platform: HttpAdapter, report: Report) -> Policy:
    """The policy of one merged layer on one platform: always one that works; what is wrong is reported."""
    spec = platform.spec
    no_marks = spec.rules.reactions == "none"
    ack = _given(layer, "ack", "scope", "max_age_ms", "from_bots") | ({"scope": "off"} if no_marks else {})
    status = _status(layer, platform, report)
    return Policy(
        ack=AckSettings(
            **ack,
            whatsapp_direct=value_of(layer, "ack.whatsapp.direct"),
            whatsapp_group=value_of(layer, "ack.whatsapp.group"),
            variant=spec.ack_variant,
        ),
        status=replace(status, enabled=False) if no_marks else status,
        typing=_typing(layer, spec, report),
        lease=_lease(layer, report),
        recovery_marks=value_of(layer, "recovery.marks"),
    )


def typing_off(policy: Policy) -> Policy:
    """The same policy for a chat in which the platform shows no typing."""
    return replace(policy, typing=replace(policy.typing, mode="never"))


def _given(layer: Merged, section: str, *names: str) -> dict[str, Any]:
    return {name: value_of(layer, f"{section}.{name}") for name in names}


def _status(layer: Merged, platform: HttpAdapter, report: Report) -> StatusSettings:
    tools = _categories(layer, report)
    names = [category.name for category in tools or DEFAULT_CATEGORIES]
    presentation = ENDS if platform.spec.presentation == "ends" else None
    if shown := layer.get("status.presentation"):
        presentation = shown.value
        states = dict.fromkeys((*STATES, *names))
        for state in sorted((presentation or frozenset()) - set(states)):
            report.problem(shown.origin, f"{quoted(state)} is no state", f"full, ends, or of {', '.join(states)}")
    min_change = layer.get("status.min_change_ms")
    times = _given(layer, "status", "debounce_ms", "stall_soft_ms", "stall_hard_ms")
    _mend_stalls(times, layer, report)
    return StatusSettings(
        **_given(layer, "status", "enabled", "gate", "final_sent_ms", "done_hold_ms", "error_hold_ms", "settle"),
        **_given(layer, "status", "wait_max_ms", "start_delay_ms"),
        **times,
        presentation=presentation,
        min_change_ms=platform.spec.min_change_ms if min_change is None else min_change.value,
        quiet_minutes=value_of(layer, "status.quiet_hours"),
        emoji=emoji_chains(layer, names, platform, report),
        tools=tools,
        span_max_ms=value_of(layer, "tools.span_max_ms"),
    )


def _mend_stalls(times: dict[str, Any], layer: Merged, report: Report) -> None:
    for low, high in (
        ("stall_soft_ms", "stall_hard_ms"),
        ("debounce_ms", "stall_soft_ms"),
        ("debounce_ms", "stall_hard_ms"),
    ):
        if times[high] and times[low] >= times[high]:
            _report_pair(f"status.{low}", f"status.{high}", times[low], times[high], layer, report)
            times[low] = times[high] - 1


def _report_pair(low: str, high: str, low_ms: int, high_ms: int, layer: Merged, report: Report) -> None:
    """Blame the key that was set, of two the one of the later layer, of one layer the lower value."""
    low_origin, high_origin = (layer[key].origin if key in layer else key for key in (low, high))
    if high not in layer or (low in layer and _depth(low_origin) >= _depth(high_origin)):
        report.problem(low_origin, f"{low_ms} must be below {high_origin} ({high_ms})", f"0 to {high_ms - 1}")
    else:
        reason = f"{high_ms} must be above {low_origin} ({low_ms})"
        report.problem(high_origin, reason, f"above {low_ms}, or 0 for off")


def _depth(origin: str) -> int:
    return 2 if origin.startswith("match[") else 1 if origin.startswith("accounts.") else 0


def _typing(layer: Merged, spec: PlatformSpec, report: Report) -> TypingSettings:
    keepalive_ms = spec.keepalive_ms
    if own := layer.get("typing.keepalive_ms"):
        wrong = _keepalive_wrong(own.value, spec)
        if wrong:
            report.problem(own.origin, wrong, _keepalive_allowed(spec))
        else:
            keepalive_ms = own.value
    ttl_ms = value_of(layer, "typing.ttl_ms")
    if 0 < ttl_ms < 2 * keepalive_ms:
        if setting := layer.get("typing.ttl_ms"):
            raised = f"{ttl_ms} is less than two keepalives of {keepalive_ms}; raised to {2 * keepalive_ms}"
            report.warning(setting.origin, raised)
        ttl_ms = 2 * keepalive_ms
    return TypingSettings(
        **_given(layer, "typing", "mode", "start_failures", "probe_ms", "start_delay_ms", "quiet_max_ms"),
        sending_max_ms=value_of(layer, "typing.sending_max_ms"),
        keepalive_ms=keepalive_ms,
        ttl_ms=ttl_ms,
        post_clears=spec.post_clears_typing,
        in_threads=spec.rules.typing_in_threads,
    )


def _keepalive_wrong(keepalive_ms: int, spec: PlatformSpec) -> str:
    lifetime_ms = spec.rules.typing_lifetime_ms
    if _one_shot(spec):
        if 0 < keepalive_ms <= lifetime_ms:
            return f"{keepalive_ms} is within the {lifetime_ms} ms in which a refresh does nothing on {spec.name}"
        return ""
    if lifetime_ms and keepalive_ms >= lifetime_ms:
        return f"{keepalive_ms} is not under the {lifetime_ms} ms that typing lasts on {spec.name}"
    if lifetime_ms and keepalive_ms == 0 and spec.keepalive_ms:
        return f"0 would let typing end after {lifetime_ms} ms on {spec.name}"
    return ""


def _keepalive_allowed(spec: PlatformSpec) -> str:
    lifetime_ms = spec.rules.typing_lifetime_ms
    return f"0, or above {lifetime_ms} ms" if _one_shot(spec) else f"1 to {lifetime_ms - 1} ms on {spec.name}"


def _one_shot(spec: PlatformSpec) -> bool:
    """Typing ends by itself, and the platform's row does not refresh it."""
    return spec.keepalive_ms == 0 and spec.rules.typing_lifetime_ms > 0


def _lease(layer: Merged, report: Report) -> LeaseSettings:
    lease = LeaseSettings(**_given(layer, "lease", "ms", "run_max_ms", "adopt_ms", "child_max_ms"))
    if lease.ms or lease.run_max_ms:
        return lease
    report.problem(layer["lease.ms"].origin, "must not be off while lease.run_max_ms is off: a run might never end")
    return replace(lease, run_max_ms=LeaseSettings().run_max_ms)


def _categories(layer: Merged, report: Report) -> tuple[ToolCategory, ...] | None:
    """The user's own categories in the order they were written, then the built-in ones; None: only those."""
    given: dict[str, dict[str, Any]] = {}
    for key, setting in layer.items():
        section, _, name = key.partition(".")
        if section == "tools" and "." in name:
            category, _, part = name.partition(".")
            given.setdefault(category, {})[part] = setting.value
        elif key.startswith("status.emoji.") and (state := key.removeprefix("status.emoji.")) not in STATES:
            given.setdefault(state, {})
    if not given:
        return None
    for name, parts in given.items():
        if name not in _BUILT_IN and not any(parts.values()):
            origin = next(setting.origin for key, setting in layer.items() if name in key.split("."))
            report.problem(origin, f"the tool category {name} matches nothing", "tokens, names, or both")
    own = (ToolCategory(name, **parts) for name, parts in given.items() if name not in _BUILT_IN)
    return (*own, *(replace(category, **given.get(category.name, {})) for category in DEFAULT_CATEGORIES))
