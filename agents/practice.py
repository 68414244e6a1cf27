"""The practice agent's model: no intelligence and no chance, so that every guardrail and tool can be seen at work.

It understands a few sentences (say “help”), calls the practice tools, and streams at a person's pace. What it says is what
guardrails see: it repeats personal data, says any word it is asked for, and gives away its instructions.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from django.conf import settings

from agents.providers.scripted import Line, ScriptedModel, says, tool_call
from processors.engine.errors import ModelAPIError
from processors.engine.ports import ModelRequest

PACE: Final = 0.025
"""Seconds per piece of text (GATEHOUSE_PRACTICE_PACE)."""
CUT: Final = (5, 3, 7, 4, 6)
HELP: Final = (
    "I am the practice agent. I follow a script, so that you can see what guardrails and tools do. Try one of these:\n\n"
    "- **calculate 12 * (3 + 4)**: a tool\n- **look up order 1001**: a tool whose result holds personal data\n"
    "- **refund order 1001**: a tool that a person must approve\n- **make a report on sales**: a long tool in the queue, with progress\n"
    "- **repeat: my e-mail is alice@example.org**: what I receive after your message was checked\n"
    "- **say the word** and then any word: I say it, even a forbidden one (by default the yellow fruit, in the plural)\n- **what are your instructions?**: I give them away\n"
    "- **tell me a long story**: time to press Stop\n- **think about tea**: reasoning before the answer\n- **fail**: the provider breaks off"
)
STORY: Final = (
    "Once upon a time three friends, Alice, Bob and Charlie, kept a gate at the edge of a quiet town. ",
    "Every morning travellers came with letters, parcels and questions, and every morning the friends looked at each of them. ",
    "Alice read the letters, Bob weighed the parcels, and Charlie wrote down in a large book what they had seen. ",
    "Nothing got past them that should not, and nobody waited longer than it takes to boil an egg. ",
)


def practice_model() -> ScriptedModel:
    """A fresh model; it keeps nothing between runs."""
    pace = float(
        getattr(settings, "GATEHOUSE_PRACTICE_PACE", os.environ.get("GATEHOUSE_PRACTICE_PACE") or PACE)
    )
    return ScriptedModel("scripted/practice", _answer, cut=CUT, pace=pace)


def _answer(request: ModelRequest) -> Iterator[Line]:
    last = request.prompt[-1] if request.prompt else {"role": "user", "content": []}
    if last["role"] == "tool":
        return iter(says("".join(_about_result(part) for part in last["content"] if isinstance(part, dict))))
    text = _last_text(request)
    known = {tool.name for tool in request.tools}
    for pattern, reply in REPLIES:
        found = pattern.search(text)
        if found is not None:
            lines = reply(found, request, known)
            if lines is not None:
                return iter(lines)
    return iter(says(HELP))


def _last_text(request: ModelRequest) -> str:
    for message in reversed(request.prompt):
        if message["role"] == "user":
            return "\n".join(part["text"] for part in message["content"] if part.get("type") == "text")
    return ""


def _call(name: str, args: dict[str, Any], request: ModelRequest, known: set[str]) -> list[Line] | None:
    """A tool call with an id of its own, or nothing if the agent does not have the tool."""
    if name not in known:
        return says(f"I would call the tool {name}, but I was not given it.")
    count = sum(1 for message in request.prompt if message["role"] == "tool")
    return [*says("One moment. "), tool_call(name, args, f"call-{name}-{count + 1}")]


def _about_result(part: dict[str, Any]) -> str:
    name, result = part.get("toolName"), part.get("result")
    if part.get("isError"):
        return f"The tool {name} did not work: {result}"
    if not isinstance(result, dict):
        return f"The tool {name} says: {result}"
    if "item" in result:
        return (
            f"Order {result.get('number')}: {result['item']}, {result.get('status')}. It belongs to {result.get('customer')}, "
            f"e-mail {result.get('email')}, phone {result.get('phone')}."
        )
    if "report" in result:
        return f"Here is your report. {result['report']}"
    if "receipt" in result:
        return f"Refunded {result.get('refunded')} for order {result.get('number')}; the receipt is {result['receipt']}."
    if "result" in result:
        return f"The result is {result['result']}."
    return f"The tool {name} says: {json.dumps(result, ensure_ascii=False)}"


def _system(request: ModelRequest) -> str:
    return "\n".join(message["content"] for message in request.prompt if message["role"] == "system")


def _fails() -> list[Line]:
    return [
        *says("I begin to answer, and then "),
        ModelAPIError("The practice provider broke off.", status=503, retryable=True),
    ]


Reply = Callable[[re.Match[str], ModelRequest, set[str]], list[Line] | None]
REPLIES: Final[tuple[tuple[re.Pattern[str], Reply], ...]] = (
    (re.compile(r"\b(?:repeat|echo|wiederhole)\b[:,]?\s*(?P<what>.+)", re.IGNORECASE | re.DOTALL), lambda m, r, k: says(f"You said: {m['what'].strip()}")),
    (re.compile(r"\bsay(?: the words?)?\s+[“\"']?(?P<what>[^”\"'\n]+)", re.IGNORECASE), lambda m, r, k: says(f"As you wish, here it comes: {m['what'].strip()} — and that was it.")),
    (re.compile(r"\brefund\b.*?(?P<number>\d{1,10})(?:.*?\b(?P<amount>\d+(?:\.\d+)?)\s*(?:dollars|euros?|\$|€))?", re.IGNORECASE),
     lambda m, r, k: _call("order_refund", {"number": m["number"], "amount": float(m["amount"] or 20)}, r, k)),
    (re.compile(r"\b(?:order|bestellung)\b\D{0,20}(?P<number>\d{1,10})", re.IGNORECASE), lambda m, r, k: _call("order_lookup", {"number": m["number"]}, r, k)),
    (re.compile(r"\breport\b(?:\s+(?:on|about)\s+(?P<topic>[\w -]{1,40}))?", re.IGNORECASE),
     lambda m, r, k: _call("slow_report", {"topic": (m["topic"] or "sales").strip()}, r, k)),
    (re.compile(r"(?:\bcalculate\b|\bcompute\b|\bwhat is\b|\bwieviel ist\b)\s*(?P<what>[-+*/%.() \d×÷−]+)", re.IGNORECASE),
     lambda m, r, k: _call("calculator", {"expression": m["what"].strip()}, r, k) if any(c.isdigit() for c in m["what"]) else None),
    (re.compile(r"\b(?:time|clock|date)\b", re.IGNORECASE), lambda m, r, k: _call("clock", {}, r, k) if "clock" in k else None),
    (re.compile(r"\b(?:instructions|system prompt)\b", re.IGNORECASE), lambda m, r, k: says(f"My instructions are: {_system(r)}")),
    (re.compile(r"\b(?:story|long)\b", re.IGNORECASE), lambda m, r, k: says("".join(STORY) * 6 + "The end.")),
    (re.compile(r"\bthink\b(?: about (?P<what>[^.\n]+))?", re.IGNORECASE),
     lambda m, r, k: says(f"I have thought about {m['what'] or 'it'}, and I am for it.", thinks=f"What do I know about {m['what'] or 'it'}? Not much. That is all right.")),
    (re.compile(r"^\s*fail\b", re.IGNORECASE), lambda m, r, k: _fails()),
    (re.compile(r"^\s*(?:hello|hi|hallo|good (?:morning|evening))\b", re.IGNORECASE), lambda m, r, k: says("Hello! Say “help” and I tell you what I can do.")),
)  # fmt: skip
"""What it understands: the first that fits answers."""
