"""What changed between two snapshots, as sentences for people who have never seen JSON."""

from __future__ import annotations

from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

LABELS: Final[dict[str, Any]] = {
    "name": gettext_lazy("Name"), "description": gettext_lazy("Description"), "instructions": gettext_lazy("Instructions"),
    "model": gettext_lazy("Model"), "credential": gettext_lazy("Credential"), "fallbacks": gettext_lazy("Fallback models"),
    "temperature": gettext_lazy("Temperature"), "max_output_tokens": gettext_lazy("Longest answer, in tokens"),
    "max_steps": gettext_lazy("Most steps per answer"), "max_processor_retries": gettext_lazy("Second chances per answer"),
    "max_total_tokens": gettext_lazy("Token limit per answer"), "max_seconds": gettext_lazy("Time limit, in seconds"),
    "history_messages": gettext_lazy("Earlier messages it remembers"), "when_busy": gettext_lazy("A second message while it answers"),
    "access": gettext_lazy("Who may chat"), "allowed_groups": gettext_lazy("Groups"), "slug": gettext_lazy("Short name"),
}  # fmt: skip
STAGES: Final[dict[str, Any]] = {
    "input": gettext_lazy("on what people write"), "output": gettext_lazy("on what the agent answers"),
    "error": gettext_lazy("when the provider fails"),
}  # fmt: skip
LONGEST: Final = 80


def snapshot_diff(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Sentences that say what is different in `new`; empty when nothing is."""
    found = [
        sentence
        for name, label in LABELS.items()
        for sentence in _field(str(label), old.get(name), new.get(name))
    ]
    for stage, words in STAGES.items():
        found += _chain(str(words), _items(old, "chains", stage), _items(new, "chains", stage))
    found += _tools(_items(old, "tools"), _items(new, "tools"))
    return [sentence[:-1] if sentence[-2:] in ("..", "!.", "?.") else sentence for sentence in found]


def _items(snapshot: dict[str, Any], *path: str) -> list[dict[str, Any]]:
    value: Any = snapshot
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _field(label: str, old: Any, new: Any) -> list[str]:
    if old == new or (_empty(old) and _empty(new)):
        return []
    long = any(isinstance(one, str) and (len(one) > LONGEST or "\n" in one) for one in (old, new))
    if long and not _empty(old) and not _empty(new):
        return [_("%(label)s: the text was changed.") % {"label": label}]
    if _empty(old):
        return [_("%(label)s is set to %(new)s.") % {"label": label, "new": say(new)}]
    if _empty(new):
        return [_("%(label)s is no longer set; it was %(old)s.") % {"label": label, "old": say(old)}]
    return [_("%(label)s: %(old)s → %(new)s.") % {"label": label, "old": say(old), "new": say(new)}]


def _chain(words: str, old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[str]:
    before, after = [one.get("slug") for one in old], [one.get("slug") for one in new]
    found = [
        _("%(name)s no longer runs %(where)s.") % {"name": one.get("name"), "where": words}
        for one in old
        if one.get("slug") not in after
    ]
    found += [
        _("%(name)s now runs %(where)s.") % {"name": one.get("name"), "where": words}
        for one in new
        if one.get("slug") not in before
    ]
    for one in new:
        same = next((other for other in old if other.get("slug") == one.get("slug")), None)
        if same is not None:
            found += _guardrail(same, one)
    return found + _moved(words, old, new)


def _guardrail(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    name, found = str(new.get("name")), []
    options, before = new.get("options") or {}, old.get("options") or {}
    for option in sorted({*options, *before}):
        found += _field(f"{name}: {option.replace('_', ' ')}", before.get(option), options.get(option))
    labels = {
        "name": _("name"),
        "kind": _("kind"),
        "on_error": _("if it fails"),
        "public_message": _("what the person is told"),
        "severity": _("severity"),
    }
    for field, label in labels.items():
        found += _field(f"{old.get('name')}: {label}", old.get(field), new.get(field))
    return found


def _moved(words: str, old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[str]:
    """Where the order of the guardrails that stayed is another: as few moves as one would make by hand."""
    kept = {one.get("slug") for one in old} & {one.get("slug") for one in new}
    before = [one.get("slug") for one in old if one.get("slug") in kept]
    names = {one.get("slug"): one.get("name") for one in new}
    after = [one.get("slug") for one in new if one.get("slug") in kept]
    found = []
    for place, slug in enumerate(after):
        if slug == before[place]:
            continue
        before.remove(slug)
        before.insert(place, slug)
        follower = before[place + 1] if place + 1 < len(before) else None
        if follower is not None:
            found.append(
                _("%(name)s moved before %(other)s (%(where)s).")
                % {"name": names[slug], "other": names[follower], "where": words}
            )
    return found


def _tools(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[str]:
    before, after = {one.get("slug"): one for one in old}, {one.get("slug"): one for one in new}
    found = [
        _("The tool %(name)s was taken away.") % {"name": one.get("name")}
        for slug, one in before.items()
        if slug not in after
    ]
    found += [
        _("The tool %(name)s was added.") % {"name": one.get("name")}
        for slug, one in after.items()
        if slug not in before
    ]
    for slug in after.keys() & before.keys():
        for field in sorted({*after[slug], *before[slug]} - {"slug"}):
            label = f"{after[slug].get('name')}: {field.replace('_', ' ')}"
            found += _field(label, before[slug].get(field), after[slug].get(field))
    return found


def _empty(value: Any) -> bool:
    return value is None or value == "" or value == [] or value == {}


def say(value: Any) -> str:
    """A value in words, on one line."""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, list | tuple):
        return ", ".join(say(one) for one in value) or _("nothing")
    if isinstance(value, dict):
        return ", ".join(f"{name} {say(one)}" for name, one in value.items())
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
