"""What a call may ask for beside its text, and nothing else."""

from __future__ import annotations

from typing import Any, Final

from agents.services.refusals import RunRefused
from audit.storable import storable, storable_text

LONGEST_SYSTEM: Final = 20_000
LONGEST_HISTORY: Final = 400_000
MOST_MESSAGES: Final = 200
SETTINGS: Final[dict[str, tuple[type | tuple[type, ...], Any, Any]]] = {
    "temperature": ((int, float), 0, 2), "top_p": ((int, float), 0, 1), "max_output_tokens": (int, 1, 1_000_000),
    "presence_penalty": ((int, float), -2, 2), "frequency_penalty": ((int, float), -2, 2), "seed": (int, -(2**63), 2**63 - 1),
}  # fmt: skip
"""Model settings that a caller may set: type, least, most."""
CHOICES: Final = ("auto", "none", "required")


def checked_overrides(given: dict[str, Any] | None) -> dict[str, Any]:
    """The accepted overrides: "system" (text), "history" ([{"role", "text"}]), "model_settings", "tool_choice", "structured_output".

    Guardrails, tools, instructions and limits cannot be overridden. Raises RunRefused.
    """
    given = {name: value for name, value in (given or {}).items() if value is not None}
    known = {"system", "history", "model_settings", "tool_choice", "structured_output"}
    unknown = set(given) - known
    if unknown:
        raise RunRefused(
            "bad_request",
            f"“{sorted(unknown)[0]}” cannot be set by a call. Use one of: {', '.join(sorted(known))}.",
        )
    out: dict[str, Any] = {}
    if "system" in given:
        text = given["system"]
        if not isinstance(text, str) or len(text) > LONGEST_SYSTEM:
            raise RunRefused(
                "too_long", f"The system text must be a text of at most {LONGEST_SYSTEM:,} characters."
            )
        out["system"] = storable_text(text)
    if "history" in given:
        out["history"] = _history(given["history"])
    if "model_settings" in given:
        out["model_settings"] = _settings(given["model_settings"])
    if "tool_choice" in given:
        if given["tool_choice"] not in CHOICES:
            raise RunRefused("bad_request", f"tool_choice must be one of: {', '.join(CHOICES)}.")
        out["tool_choice"] = given["tool_choice"]
    if "structured_output" in given:
        if not isinstance(given["structured_output"], dict) or not isinstance(
            given["structured_output"].get("schema"), dict
        ):
            raise RunRefused("bad_request", "structured_output needs a JSON Schema under “schema”.")
        out["structured_output"] = {"schema": storable(given["structured_output"]["schema"])}
    return out


def _history(given: Any) -> list[dict[str, str]]:
    if not isinstance(given, list) or len(given) > MOST_MESSAGES:
        raise RunRefused("too_long", f"The history must be a list of at most {MOST_MESSAGES} messages.")
    out = []
    for one in given:
        role, text = (one.get("role"), one.get("text")) if isinstance(one, dict) else (None, None)
        if role not in ("user", "assistant") or not isinstance(text, str):
            raise RunRefused(
                "bad_request", "Each earlier message needs a role (user or assistant) and a text."
            )
        out.append({"role": str(role), "text": storable_text(text)})
    if sum(len(one["text"]) for one in out) > LONGEST_HISTORY:
        raise RunRefused("too_long", f"The history is longer than {LONGEST_HISTORY:,} characters.")
    return out


def _settings(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise RunRefused("bad_request", "model_settings must be an object.")
    out: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name == "stop":
            stops = [value] if isinstance(value, str) else value
            if (
                not isinstance(stops, list)
                or len(stops) > 4
                or not all(isinstance(one, str) and 0 < len(one) <= 100 for one in stops)
            ):
                raise RunRefused(
                    "bad_request", "“stop” must be a text or a list of at most four short texts."
                )
            out["stop"] = stops
            continue
        if name not in SETTINGS:
            raise RunRefused(
                "bad_request",
                f"“{name}” is no model setting that a call can set. Use one of: {', '.join([*SETTINGS, 'stop'])}.",
            )
        kind, least, most = SETTINGS[name]
        if isinstance(value, bool) or not isinstance(value, kind) or not least <= value <= most:
            raise RunRefused("bad_request", f"“{name}” must be a number from {least} to {most}.")
        out[name] = value
    return out
