"""Which emoji each state shows on a platform, and what is tried when it is refused there.

The configured emoji heads the chain, the defaults of the state follow. What the platform cannot show is
left out before any call is made. The chains of done and error share no emoji: an end must never look like
the other one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from actors.config_problems import Report
from actors.config_tree import Setting
from actors.platforms.spec import HttpAdapter
from actors.presence.policy import DEFAULT_EMOJI, STATES, Chain

_AS_QUEUED = ("queued", "waiting", "waiting_user")


def emoji_chains(
    layer: Mapping[str, Setting], categories: Iterable[str], platform: HttpAdapter, report: Report
) -> Mapping[str, Chain]:
    """The chain of every state and tool category.

    ``ack`` is among them only where both ``ack.emoji`` and ``status.emoji.queued`` are set; else the ack
    shows ``queued``.
    """
    ack, queued = layer.get("ack.emoji"), layer.get("status.emoji.queued")
    chains: dict[str, Chain] = {}
    for state in dict.fromkeys((*STATES, *categories)):
        head = layer.get(f"status.emoji.{state}")
        if head is None and state in _AS_QUEUED:
            head = queued or ack
        chains[state] = _chain(state, head, platform, report)
    if ack and queued:
        chains["ack"] = _chain("queued", ack, platform, report)
    _part_ends(chains, layer, report)
    return chains


def _chain(state: str, head: Setting | None, platform: HttpAdapter, report: Report) -> Chain:
    fallbacks = DEFAULT_EMOJI.get(state, DEFAULT_EMOJI["tool"])
    if platform.spec.rules.reactions == "none":
        return tuple(dict.fromkeys((head.value, *fallbacks) if head else fallbacks))
    forms = dict.fromkeys(form for emoji in fallbacks if (form := _form(emoji, platform)))
    if head is None:
        if not forms:
            reason = f"none of the defaults can be shown on {platform.spec.name}: choose one that can"
            report.problem(f"status.emoji.{state}", reason)
        return tuple(forms)
    if own := _form(head.value, platform):
        return tuple(dict.fromkeys((own, *forms)))
    if forms:
        instead = next(iter(forms))
        report.warning(head.origin, f"{head.value} cannot be shown on {platform.spec.name}; {instead} is shown instead")
    else:
        report.problem(head.origin, f"{head.value} cannot be shown on {platform.spec.name}, nor can its fallbacks")
    return tuple(forms)


def _form(emoji: str, platform: HttpAdapter) -> str | None:
    form = platform.normalise(emoji)
    allowed = platform.spec.emoji_allowed
    return form if form and (allowed is None or form in allowed) else None


def _part_ends(chains: dict[str, Chain], layer: Mapping[str, Setting], report: Report) -> None:
    """Keep the heads of done and error, take from each what the other shows. Set heads beat defaults."""
    done, error = chains["done"], chains["error"]
    if done and error and done[0] == error[0]:
        own_done, own_error = layer.get("status.emoji.done"), layer.get("status.emoji.error")
        if own_done and own_error:
            report.problem(own_error.origin, f"done and error must differ: {own_done.origin} shows {done[0]} too")
        if own_error:
            done = done[1:]
        else:
            error = error[1:]
    done = tuple(emoji for emoji in done if emoji not in error[:1])
    error = tuple(emoji for emoji in error if emoji not in done)
    chains["done"], chains["error"] = done, error
