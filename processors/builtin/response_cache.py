"""Replays a model's reply when the very same question comes again. What it keeps has passed the output chain, and passes it again."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, Final, Literal

from pydantic import Field

from processors.builtin.request_scope import scope_key
from processors.engine.chunks import Chunk
from processors.engine.errors import ConfigError
from processors.engine.hooks import (
    HookArgs,
    ProcessInputStepArgs,
    ProcessLLMRequestArgs,
    ProcessLLMResponseArgs,
    ProcessOutputResultArgs,
    ProcessOutputStreamArgs,
)
from processors.engine.ports import BuildContext, Cache
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "response-cache"
OVERRIDE: Final = "response_cache"
"""Name in the request context: "skip" neither reads nor keeps, "refresh" asks the model and keeps its new reply."""
WHOLE: Final = frozenset({"stop", "tool-calls"})
"""Only replies that ended like this are kept: never one that was cut off, filtered or failed."""

log = logging.getLogger("gatehouse.builtin")


class ResponseCacheOptions(Options):
    """How long replies are kept, and for whom."""

    ttl: float = Field(300.0, title="Kept for", description="Seconds after which a reply is asked for again.", gt=0, le=30 * 86_400)  # fmt: skip
    scope: Literal["user", "thread", "agent", "everyone"] = Field("user", title="Shared by", description="Who may get a kept reply. Everyone: only for agents whose answers hold nothing personal.")  # fmt: skip
    tool_calls: bool = Field(True, title="Keep replies that call tools", description="The tools run again when such a reply is replayed.", json_schema_extra={"x-advanced": True})  # fmt: skip


class ResponseCache(Processor):
    """Put it last in the input chain: it keys by the tools and settings it sees there.

    The same instance may also stand in the output chain. Then replies are kept only when the whole run has passed; in the
    input chain alone they are kept when the reply's stream has passed.
    """

    def __init__(self, id: str, options: ResponseCacheOptions, cache: Cache) -> None:
        super().__init__(id)
        self.options, self._cache = options, cache

    def process_input_step(self, args: ProcessInputStepArgs) -> None:
        tools = args.tools.values() if isinstance(args.tools, dict) else args.tools
        args.state["settings"] = {
            "tools": sorted(([tool.name, tool.description, tool.parameters] for tool in tools), key=lambda tool: str(tool[0])),
            "active_tools": args.active_tools, "tool_choice": args.tool_choice, "model_settings": args.model_settings,
            "provider_options": args.provider_options, "structured_output": args.structured_output,
        }  # fmt: skip

    async def process_llm_request(self, args: ProcessLLMRequestArgs) -> dict[str, Any] | None:
        wish = args.request_context.get(OVERRIDE)
        args.state["key"] = None
        if wish == "skip":
            return None
        key = args.state["key"] = self._key(args)
        if wish == "refresh" or args.retry_count:  # a refused reply must not come again
            return None
        try:
            kept = await self._cache.get(key)
        except Exception:
            log.warning("The cache of %r can't be read; the model is asked", self.id, exc_info=True)
            return None
        return {"response": kept} if isinstance(kept, list) and kept else None

    async def process_llm_response(self, args: ProcessLLMResponseArgs) -> None:
        key = args.state.get("key")
        reason = args.steps[-1].finish_reason if args.steps else None
        calls = any(chunk["type"] == "tool-call" for chunk in args.chunks)
        if key is None or args.from_cache or reason not in WHOLE or (calls and not self.options.tool_calls):
            return
        if args.state.get("whole_run"):
            args.state.setdefault("waiting", {})[args.step_number] = (key, args.chunks)
        else:
            await self._keep(key, args.chunks)

    # In the output chain

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        args.state["whole_run"] = True
        return args.part

    async def process_output_result(self, args: ProcessOutputResultArgs) -> None:
        for key, chunks in args.state.pop("waiting", {}).values():
            await self._keep(key, chunks)

    async def _keep(self, key: str, chunks: list[dict[str, Any]]) -> None:
        try:
            await self._cache.set(key, json.loads(json.dumps(chunks)), ttl=self.options.ttl)
        except Exception:
            log.warning("The cache of %r can't be written; the reply is not kept", self.id, exc_info=True)

    def _key(self, args: ProcessLLMRequestArgs) -> str:
        """Everything that decides about a reply, and whose it is."""
        facts = {
            "processor": self.id, "agent": scope_key(args, "agent"), "scope": self.options.scope, "owner": self._owner(args),
            "step": args.step_number, "model": args.model.id, "prompt": args.prompt, "settings": args.state.get("settings"),
        }  # fmt: skip
        written = json.dumps(facts, sort_keys=True, ensure_ascii=False, default=_plain)
        return f"response:{hashlib.sha256(written.encode('utf-8', 'surrogatepass')).hexdigest()}"

    def _owner(self, args: HookArgs) -> str:
        scope = self.options.scope
        return "" if scope in ("everyone", "agent") else scope_key(args, scope)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return dict(value) if isinstance(value, Mapping) else repr(type(value))


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> ResponseCache:
        if context.cache is None:
            raise ConfigError(
                "There is no cache here, so replies can't be kept; set one up or take this processor out."
            )
        return ResponseCache(id, options, context.cache)

    registry.register(ProcessorKind(
        slug=SLUG, title="Response cache", description="Replays a reply when the same question comes again; nothing that a guardrail refused is kept.",
        options=ResponseCacheOptions, factory=build, stages=frozenset({"input", "output"}), group="Plumbing",
    ))  # fmt: skip
