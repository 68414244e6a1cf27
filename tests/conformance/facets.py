"""Comparing what happened with what a case expects. Only the facets that a case has are compared."""

from __future__ import annotations

import json
from typing import Any

from processors.engine.chunks import CHUNK_TYPES, Chunk
from processors.engine.messages import Message
from tests.conformance.conditions import prompt_texts

QUIET = {"step-start", "step-finish", "finish", "tool-call-input-streaming-start", "tool-call-delta"}


def same(want: Any, got: Any) -> bool:
    """Objects list the keys to compare; null, false and missing are equal; lists compare in order."""
    if isinstance(want, dict) and isinstance(got, dict):
        return all(same(value, got.get(key)) for key, value in want.items())
    if isinstance(want, list) and isinstance(got, list):
        return len(want) == len(got) and all(same(a, b) for a, b in zip(want, got, strict=True))
    if not want and not got and want in (None, False) and got in (None, False):
        return True
    return bool(want == got)


def flat_prompt(prompt: list[dict[str, Any]], feedback: list[str]) -> list[dict[str, Any]]:
    """One entry per part; neighbouring assistant texts joined; system entries with feedback left out."""
    entries: list[dict[str, Any]] = []
    for message in prompt:
        role, content = message["role"], message["content"]
        if isinstance(content, str):
            if content and not any(reason in content for reason in feedback):
                entries.append({"role": role, "text": content})
            continue
        for part in content:
            kind = part["type"]
            if kind == "text" and part["text"]:
                last = entries[-1] if entries else {}
                if role == "assistant" and last.get("role") == "assistant" and "text" in last:
                    last["text"] += part["text"]
                else:
                    entries.append({"role": role, "text": part["text"]})
            elif kind == "tool-call":
                entries.append(
                    {"role": role, "tool_call": {"tool_name": part["toolName"], "args": part["args"]}}
                )
            elif kind == "tool-result":
                result: dict[str, Any] = {"tool_name": part["toolName"]}
                result.update({"error": True} if part.get("isError") else {"result": part["result"]})
                entries.append({"role": role, "tool_result": result})
    return entries


def check_llm_calls(want: dict[str, Any], log: list[dict[str, Any]]) -> list[str]:
    items, wrong = want["items"], []
    if len(log) < len(items) or (want["match"] == "exact" and len(log) != len(items)):
        wrong.append(f"llm_calls: {len(log)} instead of {len(items)}")
    for at, (item, entry) in enumerate(zip(items, log, strict=False)):
        request = entry["request"]
        feedback = item.get("feedback", {})
        texts = "\n".join(prompt_texts(request.prompt))
        reasons = [*feedback.get("contains", []), *feedback.get("may_contain", [])]
        got = {
            "model": entry["model"], "prompt": flat_prompt(request.prompt, reasons), "fails": entry["fails"],
            "tools": [tool.name for tool in request.tools], "model_settings": request.settings,
            "tool_choice": None if request.tool_choice == "auto" else request.tool_choice,
            "provider_options": request.provider_options,
        }  # fmt: skip
        for key in ("model", "prompt", "tools", "model_settings", "provider_options", "tool_choice", "fails"):
            if key in item and not same(item.get(key), got[key]):
                wrong.append(f"llm_calls[{at}].{key}: {got[key]!r} instead of {item.get(key)!r}")
        wrong += [
            f"llm_calls[{at}]: no feedback {r!r}" for r in feedback.get("contains", []) if r not in texts
        ]
        wrong += [f"llm_calls[{at}]: feedback {r!r}" for r in feedback.get("absent", []) if r in texts]
        wrong += [
            f"llm_calls[{at}]: prompt lacks {t!r}" for t in item.get("prompt_contains", []) if t not in texts
        ]
        wrong += [
            f"llm_calls[{at}]: prompt has {t!r}" for t in item.get("prompt_not_containing", []) if t in texts
        ]
    return wrong


def check_hooks(want: dict[str, Any], log: list[dict[str, Any]]) -> list[str]:
    got = [e for e in log if not (e["hook"] == "process_output_stream" and e["chunk"] in QUIET)]
    optional, items, at = want.get("optional", []), want["items"], 0
    for entry in got:
        if at < len(items) and same(items[at], entry):
            at += 1
        elif not any(same(item, entry) for item in optional):
            if at == len(items) and want["match"] == "prefix":
                break
            expected = items[at] if at < len(items) else "nothing"
            return [f"hooks[{at}]: {entry!r} instead of {expected!r}"]
    return [] if at == len(items) else [f"hooks: {items[at]!r} is missing"]


def wire_item(chunk: Chunk) -> dict[str, Any]:
    wire = chunk.to_wire()
    payload = wire.get("payload") or {}
    item = {key: payload.get(key) for key in ("text", "toolName", "toolCallId", "args", "result", "providerExecuted",
                                              "stepNumber", "reason")}  # fmt: skip
    item.update({"type": chunk.type, "data": wire.get("data"), "transient": wire.get("transient"), "payload": payload,
                 "from": wire["from"], "has_run_id": bool(wire["runId"])})  # fmt: skip
    item["error"] = json.dumps(payload.get("error"))
    return item


def check_chunks(want: dict[str, Any], chunks: list[Chunk]) -> list[str]:
    types = {chunk.type for chunk in chunks}
    wrong = [f"chunks: no {t}" for t in want.get("present", []) if t not in types]
    wrong += [f"chunks: {t} is there" for t in want.get("absent", []) if t in types]
    if "items" not in want:
        return wrong

    def counts(chunk: Chunk) -> bool:
        if chunk.type in want.get("ignore", []) or ("only" in want and chunk.type not in want["only"]):
            return False
        known = chunk.type in CHUNK_TYPES or chunk.is_data
        return known and not (chunk.type in ("text-delta", "reasoning-delta") and not chunk.text)

    got = [wire_item(chunk) for chunk in chunks if counts(chunk)]
    if [item["type"] for item in got] != [item["type"] for item in want["items"]]:
        return [*wrong, f"chunks: {[(g['type'], g['text']) for g in got]} instead of {want['items']}"]
    for at, (item, entry) in enumerate(zip(want["items"], got, strict=True)):
        contains = item.get("error_contains", [])
        rest = {key: value for key, value in item.items() if key != "error_contains"}
        if not same(rest, entry):
            wrong.append(f"chunks[{at}]: {entry!r} instead of {rest!r}")
        words = [contains] if isinstance(contains, str) else contains
        wrong += [f"chunks[{at}]: error lacks {word!r}" for word in words if word not in entry["error"]]
    return wrong


def delivered_text(chunks: list[Chunk]) -> str:
    """All text the client holds: a step-retry takes back the text of its step."""
    kept, step = "", ""
    for chunk in chunks:
        if chunk.type == "text-delta":
            step += chunk.text
        elif chunk.type == "step-retry":
            step = ""
        elif chunk.type == "step-finish":
            kept, step = kept + step, ""
    return kept + step


def flat_stored(messages: list[Message]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The thread, one entry per part, and the data parts apart."""
    entries: list[dict[str, Any]] = []
    data: list[dict[str, Any]] = []
    for message in messages:
        found: list[dict[str, Any]] = []
        if message.withheld:
            found.append({"role": message.role, "withheld": True})
        if not message.content.parts and message.content.legacy:
            found.append({"role": message.role, "text": message.content.legacy})
        for part in message.content.parts:
            kind = part["type"]
            if kind == "text" and part["text"]:
                found.append({"role": message.role, "text": part["text"]})
            elif kind == "reasoning" and part["text"]:
                found.append({"role": message.role, "reasoning": part["text"]})
            elif kind == "error":
                found.append({"role": message.role, "error": True})
            elif kind == "notice":
                found.append({"notice": True, "contains": part["reason"]})
            elif kind == "tool-invocation":
                i = part["toolInvocation"]
                found.append({"role": message.role, "tool": {
                    "tool_name": i["toolName"], "tool_call_id": i["toolCallId"], "state": i["state"],
                    "args": i.get("args"), "result": i.get("result"),
                }})  # fmt: skip
            elif kind.startswith("data-"):
                data.append({"type": kind, "data": part["data"]})
        for entry in found:
            last = entries[-1] if entries else {}
            entry["blocked"] = message.blocked
            joined = (
                entry.get("role") == "assistant" == last.get("role") and "text" in entry and "text" in last
            )
            if joined and last["blocked"] == entry["blocked"]:
                last["text"] += entry["text"]
            else:
                entries.append(entry)
    return entries, data


def same_stored(want: dict[str, Any], got: dict[str, Any]) -> bool:
    reason = want.get("contains")
    rest = {key: value for key, value in want.items() if key != "contains"}
    if bool(want.get("blocked")) != bool(got.get("blocked")):
        return False
    if want.get("notice"):
        rest.pop("role", None)
    return same(rest, got) and (reason is None or reason in str(got.get("contains", "")))


def check_stored(want: dict[str, Any], messages: list[Message]) -> list[str]:
    entries, data = flat_stored(messages)
    items, wrong, left = want["items"], [], list(entries)
    if want["match"] == "contains":
        at = 0
        for entry in entries:
            at += at < len(items) and same_stored(items[at], entry)
        fits = at == len(items)
    elif want["match"] == "exact":
        fits = len(items) == len(entries) and all(map(same_stored, items, entries))
    else:
        for item in items:
            found = next((entry for entry in left if same_stored(item, entry)), None)
            if found is not None:
                left.remove(found)
        fits = not left and len(items) == len(entries)
    if not fits:
        wrong.append(f"stored: {entries!r} instead of {items!r}")
    if "data" in want and not same(want["data"], data):
        wrong.append(f"stored.data: {data!r} instead of {want['data']!r}")
    everything = json.dumps([[e for e in entries if not e.get("notice")], data], ensure_ascii=False)
    wrong += [f"stored holds {text!r}" for text in want.get("not_containing", []) if text in everything]
    if want.get("no_tools") and any("tool" in entry for entry in entries):
        wrong.append("stored holds a tool part")
    return wrong


def check_violations(
    want: dict[str, Any], entries: list[Any], callbacks: list[tuple[str, str]], calling: set[str]
) -> list[str]:
    got = [{"processor": e.violation.processor_id, "message": e.violation.message, "detail": e.violation.detail}
           for e in entries]  # fmt: skip
    left, wrong = list(got), []
    if want["match"] == "exact":
        fits = len(got) == len(want["items"]) and all(map(same, want["items"], got))
    else:
        for item in want["items"]:
            found = next((entry for entry in left if same(item, entry)), None)
            if found is not None:
                left.remove(found)
        fits = len(got) - len(left) == len(want["items"])
    if not fits:
        wrong.append(f"violations: {got!r} instead of {want['items']!r}")
    expected = [(g["processor"], g["message"]) for g in got if g["processor"] in calling]
    if expected != [c for c in callbacks if c[0] in calling]:
        wrong.append(f"callbacks: {callbacks!r} instead of {expected!r}")
    return wrong
