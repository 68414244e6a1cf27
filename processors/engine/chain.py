"""One run's chains: a method per hook, the checks of what each hook returns, and what its return does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from processors.engine import hooks as h
from processors.engine.errors import ContractError, ProcessorFailed
from processors.engine.hooks import Stage
from processors.engine.message_list import MessageList, Source
from processors.engine.messages import Message, SystemMessage
from processors.engine.ports import Prompt
from processors.engine.processor import ChainEntry
from processors.engine.scope import UNCHANGED, RunScope
from processors.engine.slots import Slot, build_slots, groups_of
from processors.engine.stream_path import StreamPath

log = logging.getLogger("gatehouse.engine")

MESSAGES_ALLOWED = "a list of Messages, the same message_list, {'messages', 'system_messages'} or None"
ALLOWED_IN_GROUP = "None: processors of one group judge side by side and change nothing"
STEP_KEYS = frozenset({
    "model", "tool_choice", "active_tools", "tools", "messages", "message_list", "system_messages",
    "provider_options", "model_settings", "structured_output",
})  # fmt: skip
STEP_ALLOWED = f"None, a list of Messages, the same message_list, or a dictionary with any of {', '.join(sorted(STEP_KEYS))}"


class ChainRunner:
    """The three chains of one run, combined, with their state."""

    def __init__(
        self, scope: RunScope, stages: dict[Stage, list[ChainEntry]], message_list: MessageList
    ) -> None:
        self.scope, self.list = scope, message_list
        self.slots = build_slots(stages)
        self.stream = StreamPath(scope, [s for s in self.slots if s.stage == "output"], message_list)

    def with_hook(self, hook: str) -> list[Slot]:
        """The slots that have a hook, in order."""
        return [slot for slot in self.slots if hook in slot.hooks]

    # ── what hooks return ──────────────────────────────────────────────────
    def _wrong(self, slot: Slot, hook: str, result: Any, allowed: str) -> ContractError:
        return ContractError(slot.id, hook, f"{type(result).__name__} {result!r:.80}", allowed)

    def _same_list(self, slot: Slot, hook: str, result: MessageList) -> None:
        if result is not self.list:
            raise ContractError(
                slot.id,
                hook,
                "another MessageList instance",
                "the message_list it was given; change that one in place",
            )

    def _messages(self, slot: Slot, hook: str, result: Any, allowed: str) -> list[Message]:
        if not isinstance(result, list | tuple) or not all(
            isinstance(message, Message) for message in result
        ):
            raise self._wrong(slot, hook, result, allowed)
        return list(result)

    def _systems(self, slot: Slot, hook: str, given: Any) -> list[SystemMessage]:
        made: list[SystemMessage] = []
        for item in given if isinstance(given, list | tuple) else [given]:
            if isinstance(item, SystemMessage):
                made.append(item)
            elif isinstance(item, str):
                made.append(SystemMessage(item))
            else:
                raise self._wrong(slot, hook, item, "system_messages: SystemMessage objects or strings")
        return made

    def _apply(
        self,
        slot: Slot,
        hook: str,
        result: Any,
        view: Sequence[Message],
        source: Source,
        *,
        empty_means_unchanged: bool,
    ) -> None:
        """Apply what a message hook returned. Raises ContractError."""
        if result is None:
            return
        if isinstance(result, MessageList):
            self._same_list(slot, hook, result)
            return
        if isinstance(result, dict):
            if not result or set(result) - {"messages", "system_messages"}:
                raise self._wrong(slot, hook, result, MESSAGES_ALLOWED)
            if result.get("system_messages") is not None:
                self.list.system_messages = self._systems(slot, hook, result["system_messages"])
            result = result["messages"] if result.get("messages") is not None else list(view)
        messages = self._messages(slot, hook, result, MESSAGES_ALLOWED)
        if messages or not empty_means_unchanged:
            self.list.reconcile(view, messages, source)

    async def _each(
        self, hook: str, make: Callable[[Slot], Any], apply: Callable[[Slot, Any, Any], None]
    ) -> None:
        """Call a hook of the whole chain, one after the other; a group side by side. Wrong returns are recorded."""
        for group in groups_of(self.with_hook(hook)):
            if len(group) > 1:
                await self._side_by_side(group, hook, make)
                continue
            slot = group[0]
            mark = self.list.checkpoint() if slot.entry.on_error == "allow" else None
            args = make(slot)
            result = await self.scope.call(slot, hook, args)
            if result is UNCHANGED:
                if mark is not None:
                    self.list.restore(mark)
                continue
            try:
                apply(slot, args, result)
            except ContractError as error:
                await self.scope.judge(slot, hook, error, args)

    async def _side_by_side(self, group: list[Slot], hook: str, make: Callable[[Slot], Any]) -> None:
        """Read-only judges together: the first refusal in list order wins and is what is reported; the rest is ended."""
        given = [make(slot) for slot in group]
        tasks = [asyncio.ensure_future(self.scope.attempt(slot, hook, args))
                 for slot, args in zip(group, given, strict=True)]  # fmt: skip
        try:
            for slot, args, task in zip(group, given, tasks, strict=True):
                result = await self.scope.settle(slot, hook, await task, args)
                same = result is self.list or (
                    isinstance(result, list) and _same_objects(result, args.messages)
                )
                if result is not None and result is not UNCHANGED and not same:
                    await self.scope.judge(
                        slot, hook, self._wrong(slot, hook, result, ALLOWED_IN_GROUP), args
                    )
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _systems_now(self) -> list[SystemMessage]:
        return [SystemMessage(system.text, system.tag) for system in self.list.system_messages]

    # ── input chain ────────────────────────────────────────────────────────
    async def input(self) -> None:
        """process_input: once, before the loop."""
        hook = "process_input"

        def make(slot: Slot) -> Any:
            return self.scope.args_for(
                slot, h.ProcessInputArgs, writer=False, messages=self.list.input,
                system_messages=self._systems_now(), message_list=self.list,
            )  # fmt: skip

        def apply(slot: Slot, args: Any, result: Any) -> None:
            self._apply(slot, hook, result, self.list.input, "input", empty_means_unchanged=False)

        await self._each(hook, make, apply)

    async def input_step(
        self,
        settings: dict[str, Any],
        common: dict[str, Any],
        resolve: Callable[[Any], Any],
        prepare: Any = None,
    ) -> None:
        """process_input_step of the chain, then the call's own prepare_step. `settings` is changed in place.

        resolve: turns a model's name into a client, so that every processor receives one. Raises ConfigError.
        """

        def make(slot: Slot) -> Any:
            return self.scope.args_for(
                slot, h.ProcessInputStepArgs, messages=self.list.all, message_list=self.list,
                system_messages=self._systems_now(), **settings, **common,
            )  # fmt: skip

        def apply(slot: Slot, args: Any, result: Any) -> None:
            self._apply_step(slot, result, self.list.all, settings)
            settings["model"] = resolve(settings["model"])

        await self._each("process_input_step", make, apply)
        if prepare is not None:
            await prepare(settings, common)

    async def apply_step(
        self, slot: Slot, result: Any, view: Sequence[Message], settings: dict[str, Any]
    ) -> None:
        """Apply what prepare_step returned; a wrong return is recorded as an error and raised."""
        try:
            self._apply_step(slot, result, view, settings)
        except ContractError as error:
            await self.scope.judge(slot, "process_input_step", error, None)

    def _apply_step(self, slot: Slot, result: Any, view: Sequence[Message], settings: dict[str, Any]) -> None:
        hook = "process_input_step"
        if isinstance(result, dict):
            self.apply_step_object(slot, hook, result, view, settings)
        elif result is not UNCHANGED:
            self._apply(slot, hook, result, view, "input", empty_means_unchanged=False)

    def apply_step_object(
        self, slot: Slot, hook: str, result: dict[str, Any], view: Sequence[Message], settings: dict[str, Any]
    ) -> None:
        """The object form of process_input_step's return. Raises ContractError."""
        unknown = set(result) - STEP_KEYS
        if unknown:
            raise ContractError(
                slot.id, hook, f"an object with {', '.join(map(repr, sorted(unknown)))}", STEP_ALLOWED
            )
        if "messages" in result and "message_list" in result:
            raise ContractError(
                slot.id, hook, "both messages and message_list", "only one of messages and message_list"
            )
        if result.get("message_list") is not None:
            if not isinstance(result["message_list"], MessageList):
                raise self._wrong(slot, hook, result["message_list"], STEP_ALLOWED)
            self._same_list(slot, hook, result["message_list"])
        if result.get("messages") is not None:
            self.list.reconcile(view, self._messages(slot, hook, result["messages"], STEP_ALLOWED), "input")
        if result.get("system_messages") is not None:
            self.list.system_messages = self._systems(slot, hook, result["system_messages"])
        for key, value in result.items():
            if key in ("messages", "message_list", "system_messages"):
                continue
            self._check_setting(slot, hook, key, value)
            settings[key] = (
                {tool.name: tool for tool in value}
                if key == "tools" and not isinstance(value, dict)
                else value
            )

    def _check_setting(self, slot: Slot, hook: str, key: str, value: Any) -> None:
        fits: dict[str, Callable[[Any], bool]] = {
            "model": lambda v: isinstance(v, str) or hasattr(v, "stream"),
            "tool_choice": lambda v: v is None or isinstance(v, str | dict),
            "active_tools": lambda v: (
                v is None or (isinstance(v, list | tuple) and all(isinstance(n, str) for n in v))
            ),
            "tools": _are_tools,
        }
        check = fits.get(key, lambda v: v is None or isinstance(v, dict))
        if not check(value):
            raise ContractError(slot.id, hook, f"{key}={value!r:.60}", STEP_ALLOWED)

    async def llm_request(self, prompt: Prompt, common: dict[str, Any]) -> tuple[Prompt, list[Any] | None]:
        """process_llm_request: the prompt for this one call, and a recorded answer if a processor gave one."""
        hook, response = "process_llm_request", None
        for slot in self.with_hook(hook):
            args = self.scope.args_for(
                slot, h.ProcessLLMRequestArgs, prompt=prompt, message_list=self.list, **common
            )
            result = await self.scope.call(slot, hook, args)
            if result is None or result is UNCHANGED or result == {}:
                continue
            try:
                if not isinstance(result, dict) or set(result) - {"prompt", "response"}:
                    raise self._wrong(slot, hook, result, "None, {'prompt'} or {'response'}")
                if "prompt" in result:
                    if not isinstance(result["prompt"], list):
                        raise self._wrong(slot, hook, result["prompt"], "prompt: a list of prompt messages")
                    prompt = result["prompt"]
                if result.get("response") is not None and response is None:
                    response = result["response"]
                    if isinstance(response, dict):
                        response = response.get("chunks", [])
                    if not isinstance(response, list):
                        raise self._wrong(slot, hook, response, "response: a list of recorded chunks")
            except ContractError as error:
                await self.scope.judge(slot, hook, error, args)
        return prompt, response

    async def llm_response(self, values: dict[str, Any]) -> None:
        """process_llm_response: the step's chunks are complete."""
        hook = "process_llm_response"
        for slot in self.with_hook(hook):
            args = self.scope.args_for(slot, h.ProcessLLMResponseArgs, **values)
            result = await self.scope.call(slot, hook, args)
            if result is not None and result is not UNCHANGED:
                await self.scope.judge(slot, hook, self._wrong(slot, hook, result, "None"), args)

    # ── output chain ───────────────────────────────────────────────────────
    async def output_step(self, values: dict[str, Any]) -> None:
        """process_output_step: after the reply, before any tool runs."""
        hook = "process_output_step"

        def make(slot: Slot) -> Any:
            return self.scope.args_for(
                slot, h.ProcessOutputStepArgs, messages=self.list.all, message_list=self.list,
                system_messages=self._systems_now(), **values,
            )  # fmt: skip

        def apply(slot: Slot, args: Any, result: Any) -> None:
            self._apply(slot, hook, result, self.list.all, "response", empty_means_unchanged=True)

        await self._each(hook, make, apply)

    async def tool_result(self, values: dict[str, Any], result: Any) -> Any:
        """process_tool_result: chained; returns the value that joins the list."""
        hook, call_id, now = "process_tool_result", values["tool_call_id"], result

        def make(slot: Slot) -> Any:
            return self.scope.args_for(
                slot, h.ProcessToolResultArgs, messages=self.list.all, message_list=self.list, result=now,
                system_messages=self._systems_now(), **values,
            )  # fmt: skip

        def apply(slot: Slot, args: Any, returned: Any) -> None:
            nonlocal now
            self._apply(slot, hook, returned, self.list.all, "response", empty_means_unchanged=True)
            part = self.list.find_tool_invocation(call_id)
            if part is not None and part["toolInvocation"].get("state") == "result":
                now = part["toolInvocation"].get("result")

        await self._each(hook, make, apply)
        return now

    async def output_result(self, result: h.OutputResult) -> None:
        """process_output_result: once, at the end."""
        hook = "process_output_result"

        def make(slot: Slot) -> Any:
            return self.scope.args_for(
                slot,
                h.ProcessOutputResultArgs,
                messages=self.list.response,
                message_list=self.list,
                result=result,
            )

        def apply(slot: Slot, args: Any, returned: Any) -> None:
            self._apply(slot, hook, returned, self.list.response, "response", empty_means_unchanged=True)

        await self._each(hook, make, apply)

    async def flush_late(self) -> None:
        """Record what processors have reported after their last hook had returned."""
        for slot in self.slots:
            if slot.pending:
                await self.scope.flush(slot, "process_output_result", None)

    # ── error chain ────────────────────────────────────────────────────────
    async def api_error(self, error: Exception, common: dict[str, Any]) -> bool:
        """process_api_error: True when a processor asks for another try. Its own exceptions change nothing."""
        hook = "process_api_error"
        for slot in self.with_hook(hook):
            args = self.scope.args_for(
                slot,
                h.ProcessAPIErrorArgs,
                error=error,
                messages=self.list.all,
                message_list=self.list,
                **common,
            )
            try:
                result = await self.scope.call(slot, hook, args)
            except ProcessorFailed:
                log.warning("Error processor %r failed; the original error stays", slot.id, exc_info=True)
                continue
            if result is None or result is UNCHANGED:
                continue
            if not isinstance(result, dict) or set(result) - {"retry"}:
                await self.scope.judge(
                    slot, hook, self._wrong(slot, hook, result, "None or {'retry': bool}"), args
                )
            elif result.get("retry"):
                return True
        return False


def _are_tools(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) and hasattr(tool, "spec") for name, tool in value.items())
    return isinstance(value, list | tuple) and all(
        hasattr(tool, "spec") and hasattr(tool, "name") for tool in value
    )


def _same_objects(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
