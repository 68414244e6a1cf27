"""Probe processors: they do what a case's actions say and log what they were given."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from processors.engine.chunks import Chunk
from processors.engine.message_list import MessageList
from processors.engine.messages import Message, SystemMessage
from processors.engine.processor import Processor
from tests.conformance.conditions import chosen, edited, holds, subject_of
from tests.conformance.scripted import message_of

NOTHING = object()


class Case:
    """What the probes of one case share: logs, the cache, makers of models and tools."""

    def __init__(self) -> None:
        self.hooks: list[dict[str, Any]] = []
        self.args: dict[str, list[Any]] = {}
        self.states: dict[str, Any] = {}
        self.strange: list[str] = []
        self.counts: dict[tuple[str, str], int] = {}
        self.cache: dict[str, Any] = {}
        self.callbacks: list[tuple[str, str]] = []
        self.model: Callable[[str], Any] = lambda id: id
        self.tool: Callable[[str], Any] = lambda name: name


class Working:
    """One call of a hook: the working list and what the actions have collected."""

    def __init__(self, case: Case, hook: str, args: Any) -> None:
        self.case, self.hook, self.args = case, hook, args
        self.messages: list[Message] = list(getattr(args, "messages", []) or [])
        self.object: dict[str, Any] | None = None
        self.prompt: list[dict[str, Any]] | None = None
        self.part = getattr(args, "part", None)
        self.response: Any = None

    # ── state and writer ───────────────────────────────────────────────────
    def set_state(self, action: dict[str, Any]) -> None:
        self.args.state[action["key"]] = action["value"]

    def inc_state(self, action: dict[str, Any]) -> None:
        self.args.state[action["key"]] = self.args.state.get(action["key"], 0) + action.get("by", 1)

    def append_state(self, action: dict[str, Any]) -> None:
        source = action.get("from")
        values = {"subject": lambda: subject_of(self.hook, self.args), "hook": lambda: self.hook,
                  "chunk_type": lambda: self.args.part.type}  # fmt: skip
        value = action["value"] if source is None else values[source]()
        self.args.state.setdefault(action["key"], []).append(value)

    def emit(self, action: dict[str, Any]) -> None:
        if self.args.writer is not None:
            options = action.get("options")
            self.args.writer.custom(copy.deepcopy(action["chunk"]), *([options] if options else []))

    # ── messages ───────────────────────────────────────────────────────────
    def edit_messages(self, action: dict[str, Any]) -> None:
        picked = {id(m) for m in chosen(self.messages, action.get("select"))}
        for at, message in enumerate(self.messages):
            if id(message) in picked:
                target = message if action.get("in_place") else message.copy()
                for part in target.text_parts():
                    part["text"] = edited(part["text"], action["edit"])
                self.messages[at] = target

    def set_part_type(self, action: dict[str, Any]) -> None:
        for message in chosen(self.messages, action.get("select")):
            for part in message.content.parts:
                if part["type"] == action["from"]:
                    part["type"] = action["to"]

    def drop_messages(self, action: dict[str, Any]) -> None:
        gone = {m.id for m in chosen(self.messages, action.get("select"))}
        self.messages = [m for m in self.messages if m.id not in gone]

    def add_messages(self, action: dict[str, Any]) -> None:
        new = [message_of(value) for value in action["messages"]]
        self.messages = [*new, *self.messages] if action.get("at") == "start" else [*self.messages, *new]

    def reorder_messages(self, action: dict[str, Any]) -> None:
        self.messages = self.messages[::-1]

    def view(self, action: dict[str, Any]) -> list[Message]:
        found: list[Message] = getattr(self.args.message_list, action.get("view", "all"))
        return found

    def list_remove(self, action: dict[str, Any]) -> None:
        self.args.message_list.remove_by_ids([m.id for m in chosen(self.view(action), action.get("select"))])

    def list_add(self, action: dict[str, Any]) -> None:
        self.args.message_list.add([message_of(value) for value in action["messages"]], action["source"])

    def list_add_system(self, action: dict[str, Any]) -> None:
        self.args.message_list.add_system(action["text"], action.get("tag"))

    def list_edit(self, action: dict[str, Any]) -> None:
        for message in chosen(self.view(action), action.get("select")):
            for part in message.text_parts():
                part["text"] = edited(part["text"], action["edit"])

    def list_update_tool_invocation(self, action: dict[str, Any]) -> None:
        result = action.get("result", NOTHING)
        if result is NOTHING:
            result = action.get("with", NOTHING)
        if "redact_keys" in action:
            result = {**self.args.result, **dict.fromkeys(action["redact_keys"], "[REDACTED]")}
        invocation = {"state": "result", "toolCallId": self.args.tool_call_id, "toolName": self.args.tool_name,
                      "args": self.args.args, "result": result}  # fmt: skip
        self.args.message_list.update_tool_invocation(
            {"type": "tool-invocation", "toolInvocation": invocation}
        )

    # ── results ────────────────────────────────────────────────────────────
    def set(self, action: dict[str, Any]) -> None:
        field, value, mode = action["field"], action.get("value"), action.get("mode")
        self.object = self.object if self.object is not None else {}
        if field == "model":
            self.object[field] = self.case.model(str(value))
        elif field == "tools":
            named = {name: self.case.tool(name) for name in value or []}
            self.object[field] = {**self.args.tools, **named} if mode == "merge" else named
        elif field == "system_messages":
            texts = [SystemMessage(text) for text in action["texts"]]
            before = list(self.args.system_messages)
            self.object[field] = {"append": [*before, *texts], "prepend": [*texts, *before]}.get(
                str(mode), texts
            )
        elif field == "messages":
            self.object[field] = self.messages
        elif field == "message_list":
            self.object[field] = self.args.message_list
        elif field in ("provider_options", "model_settings"):
            self.object[field] = {**getattr(self.args, field), **(value or {})}
        elif field == "structured_output" and value:
            self.object[field] = schema_of(value)
        else:
            self.object[field] = value

    def new_prompt(self) -> list[dict[str, Any]]:
        if self.prompt is None:
            self.prompt = copy.deepcopy(self.args.prompt)
        return self.prompt

    def prompt_edit(self, action: dict[str, Any]) -> None:
        for message in self.new_prompt():
            if action.get("role") not in (None, message["role"]):
                continue
            if isinstance(message["content"], str):
                message["content"] = edited(message["content"], action["edit"])
            else:
                for part in message["content"]:
                    if part["type"] == "text":
                        part["text"] = edited(part["text"], action["edit"])

    def prompt_add(self, action: dict[str, Any]) -> None:
        text = action["text"]
        content = text if action["role"] == "system" else [{"type": "text", "text": text}]
        message = {"role": action["role"], "content": content}
        prompt = self.new_prompt()
        prompt.insert(0 if action.get("at") == "start" else len(prompt), message)

    def prompt_drop(self, action: dict[str, Any]) -> None:
        from tests.conformance.conditions import prompt_texts

        def gone(message: dict[str, Any]) -> bool:
            role = action.get("role") in (None, message["role"])
            text = action.get("text_contains")
            return role and (text is None or any(text in found for found in prompt_texts([message])))

        self.prompt = [message for message in self.new_prompt() if not gone(message)]

    def respond(self, action: dict[str, Any]) -> None:
        self.response = {"response": copy.deepcopy(action["chunks"])}

    def cache_key(self) -> str:
        from tests.conformance.conditions import prompt_texts

        return "|".join(f"{m['role']}:{text}" for m in self.args.prompt for text in prompt_texts([m]))

    def cache_lookup(self, action: dict[str, Any]) -> None:
        key = self.args.state["cache_key"] = self.cache_key()
        if key in self.case.cache:
            self.response = {"response": copy.deepcopy(self.case.cache[key])}

    def cache_store(self, action: dict[str, Any]) -> None:
        if not self.args.from_cache:
            self.case.cache[self.args.state["cache_key"]] = copy.deepcopy(self.args.chunks)

    # ── chunks ─────────────────────────────────────────────────────────────
    def part_edit(self, action: dict[str, Any]) -> None:
        if self.part is not None and self.part.payload and isinstance(self.part.payload.get("text"), str):
            text = edited(self.part.payload["text"], action["edit"])
            self.part = self.part.replace(payload={**self.part.payload, "text": text})

    def part_mutate(self, action: dict[str, Any]) -> None:
        if self.part is not None and self.part.payload and isinstance(self.part.payload.get("text"), str):
            self.part.payload["text"] = edited(self.part.payload["text"], action["edit"])

    def part_replace(self, action: dict[str, Any]) -> None:
        self.part = Chunk.from_wire({**self.part.to_wire(), **action["chunk"]})

    def part_data(self, action: dict[str, Any]) -> None:
        self.part = self.part.replace(data=action["data"])

    # ── endings ────────────────────────────────────────────────────────────
    def abort(self, action: dict[str, Any]) -> None:
        given = {name: action[name] for name in ("retry", "metadata") if name in action}
        self.args.abort(*([action["reason"]] if "reason" in action else []), **given)

    def throw(self, action: dict[str, Any]) -> None:
        name = action.get("name")
        raise (type(name, (Exception,), {}) if name else RuntimeError)(action["message"])

    def returned(self, action: dict[str, Any]) -> Any:
        foreign = MessageList()
        what = action["what"]
        if what.startswith("foreign"):
            foreign.add(self.messages, "input")
        return {
            "none": lambda: None, "part": lambda: self.args.part, "messages": lambda: self.messages,
            "empty_list": list, "message_list": lambda: self.args.message_list,
            "message_list_object": lambda: {"message_list": self.args.message_list},
            "foreign_message_list": lambda: foreign, "foreign_message_list_object": lambda: {"message_list": foreign},
            "messages_and_message_list": lambda: {"messages": self.messages, "message_list": self.args.message_list},
            "messages_and_system": lambda: {
                "messages": self.messages,
                "system_messages": (self.object or {}).get("system_messages", self.args.system_messages),
            },
            "empty_object": dict, "retry": lambda: {"retry": True}, "no_retry": lambda: {"retry": False},
            "value": lambda: action.get("value"),
        }[what]()  # fmt: skip

    def default(self) -> Any:
        """What the hook returns when no `return` ran."""
        if self.object is not None:
            return self.object
        if self.hook == "process_output_stream":
            return self.part
        if self.hook in ("process_input", "process_output_step", "process_output_result"):
            return self.messages
        if self.hook == "process_llm_request":
            return self.response or ({"prompt": self.prompt} if self.prompt is not None else None)
        return None


def schema_of(value: dict[str, Any]) -> dict[str, Any]:
    """A case's `{field: type}` as a JSON Schema."""
    properties = {field: {"type": kind} for field, kind in value.get("schema", value).items()}
    return {"schema": {"type": "object", "properties": properties, "required": list(properties)}}


def act(case: Case, hook: str, args: Any, actions: list[dict[str, Any]], nth: int) -> Any:
    """Run a hook's actions and return what the hook returns."""
    working = Working(case, hook, args)
    for action in actions:
        if not holds(action.get("when", {}), hook, args, nth):
            continue
        op = action["op"]
        if op == "return":
            return working.returned(action)
        if op not in ("pass", "probe"):
            getattr(working, op.replace(".", "_"))(action)
    return working.default()


def log_entry(hook: str, id: str, args: Any) -> dict[str, Any]:
    """A hook call as the log keeps it."""
    entry: dict[str, Any] = {"hook": hook, "processor": id, "retry_count": args.retry_count}
    for name in ("step_number", "tool_choice", "active_tools", "model_settings", "provider_options", "from_cache",
                 "warnings", "finish_reason", "text", "provider_metadata", "tool_name", "tool_call_id", "args",
                 "result"):  # fmt: skip
        if hasattr(args, name):
            entry[name] = copy.deepcopy(getattr(args, name))
    if hasattr(args, "model"):
        entry["model"] = args.model if isinstance(args.model, str) else args.model.id
    if hasattr(args, "tools"):
        entry["tools"] = list(args.tools)
    if hasattr(args, "tool_calls"):
        entry["tool_calls"] = [
            {"tool_name": c.tool_name, "args": copy.deepcopy(c.args)} for c in args.tool_calls
        ]
    if hasattr(args, "usage"):
        entry["usage"] = {"input_tokens": args.usage.input_tokens, "output_tokens": args.usage.output_tokens,
                          "total_tokens": args.usage.total_tokens}  # fmt: skip
    if hasattr(args, "error"):
        entry["error"] = str(args.error)
    if hook == "process_output_stream":
        entry["chunk"] = args.part.type
        payload = args.part.payload or {}
        entry.update({"text": payload.get("text"), "tool_name": payload.get("toolName")})
    if hook == "process_output_result":
        entry.update({"text": args.result.text, "finish_reason": args.result.finish_reason})
        entry.pop("result", None)
    return entry


def callback_of(case: Case, spec: dict[str, Any]) -> Callable[[Any], None]:
    """An on_violation callback that is noted, and raises if the case wants that."""

    def on_violation(violation: Any) -> None:
        case.callbacks.append((violation.processor_id, violation.message))
        if "throws" in spec:
            raise RuntimeError(spec["throws"])

    return on_violation


def probe_of(case: Case, key: str, value: dict[str, Any]) -> Processor:
    """A processor that has exactly the hooks of the case."""
    probe = Processor(value["id"], name=value.get("name"))
    probe.description = value.get("description", "")
    probe.process_data_parts = value.get("process_data_parts", False)
    if "on_violation" in value:
        probe.on_violation = callback_of(case, value["on_violation"])
    for hook, body in value["hooks"].items():

        def call(args: Any, hook: str = hook, body: dict[str, Any] = body) -> Any:
            count = case.counts.get((hook, value["id"]), 0)
            case.counts[(hook, value["id"])] = count + 1
            case.hooks.append(log_entry(hook, value["id"], args))
            case.args.setdefault(hook, []).append(args)
            if case.states.setdefault(key, args.state) is not args.state:
                case.strange.append(f"{hook} of {value['id']} has another state than its hooks before")
            return act(case, hook, args, body["do"], count)

        setattr(probe, hook, call)
    return probe
