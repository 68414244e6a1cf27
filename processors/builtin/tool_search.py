"""Shows a model with very many tools only a search, and the tools that it has found."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any, Final

from pydantic import Field

from processors.builtin.meta_tool import MetaTool
from processors.engine.hooks import ProcessInputStepArgs
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "tool-search"
SEARCH: Final = "search_tools"
LOAD: Final = "load_tool"
NAME_WEIGHT: Final = 3
WORD: Final = re.compile(r"[^\W_]+")
CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
HINT: Final = (
    "Most of your tools are hidden. Find them with search_tools, then load the ones you need with load_tool."
)


class ToolSearchOptions(Options):
    """What is shown at once, and how tools are found."""

    from_tools: int = Field(8, title="From this many tools on", description="An agent with fewer tools shows them all, without a search.", ge=1, le=10_000)  # fmt: skip
    always: list[str] = Field(default_factory=list, title="Always shown", description="Tools that need not be searched for.", max_length=200)  # fmt: skip
    top_k: int = Field(
        5, title="Hits per search", description="So many tools a search finds at most.", ge=1, le=50
    )
    min_score: float = Field(0.0, title="Lowest score", description="Hits below this score are left out; scores are those of BM25, usually between 0 and 15.", ge=0, json_schema_extra={"x-advanced": True})  # fmt: skip
    auto_load: bool = Field(False, title="Load what was found", description="Load all hits at once, so that load_tool is not needed.")  # fmt: skip
    inject_catalog: bool = Field(False, title="Tell all names", description="Add a list of all tools' names to the instructions.", json_schema_extra={"x-advanced": True})  # fmt: skip


class ToolIndex:
    """BM25 over names and descriptions; words of the name count three times."""

    def __init__(self, tools: dict[str, Any]) -> None:
        self.words = {
            name: Counter(_words(name) * NAME_WEIGHT + _words(str(tool.description)))
            for name, tool in tools.items()
        }
        self.sizes = {name: sum(words.values()) for name, words in self.words.items()}
        self.average = sum(self.sizes.values()) / max(1, len(self.sizes))
        self.spread = Counter(word for words in self.words.values() for word in words)

    def search(self, query: str, top: int, lowest: float) -> list[tuple[str, float]]:
        """(name, score), best first; equal scores by name."""
        scores = {name: self._score(name, set(_words(query))) for name in self.words}
        hits = [(name, score) for name, score in scores.items() if score > 0 and score >= lowest]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:top]

    def _score(self, name: str, query: set[str]) -> float:
        words, size, total = self.words[name], self.sizes[name], len(self.words)
        score = 0.0
        for word in query:
            count = words.get(word, 0)
            if count:
                rarity = math.log(1 + (total - self.spread[word] + 0.5) / (self.spread[word] + 0.5))
                score += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * size / self.average))
        return score


def _words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(CAMEL.sub(" ", text))]


class ToolSearch(Processor):
    """What was loaded in a conversation stays loaded: earlier load_tool results in the thread say so, nothing else is kept."""

    def __init__(self, id: str, options: ToolSearchOptions) -> None:
        super().__init__(id)
        self.options = options

    def process_input_step(self, args: ProcessInputStepArgs) -> dict[str, Any] | None:
        allowed = {
            name: tool
            for name, tool in _named(args.tools).items()
            if args.active_tools is None or name in args.active_tools
        }
        if len(allowed) < self.options.from_tools:
            return None
        loaded: set[str] = args.state.setdefault("loaded", set())
        loaded |= _loaded_before(args)
        args.message_list.add_system(HINT, "tool-search")
        if self.options.inject_catalog:
            args.message_list.add_system(
                "Hidden tools: " + ", ".join(sorted(set(allowed) - loaded)), "tool-search"
            )
        shown = {
            name: tool for name, tool in allowed.items() if name in loaded or name in self.options.always
        }
        for tool in self._meta_tools(allowed, loaded):
            shown[tool.name] = tool
        active = None if args.active_tools is None else list(shown)
        return {"tools": shown, "active_tools": active}

    def _meta_tools(self, tools: dict[str, Any], loaded: set[str]) -> list[MetaTool]:
        index = ToolIndex(tools)

        async def search(given: Any, context: Any) -> Any:
            hits = index.search(given["query"], self.options.top_k, self.options.min_score)
            if self.options.auto_load:
                loaded.update(name for name, _ in hits)
            found = [{"name": name, "description": tools[name].description} for name, _ in hits]
            return {"tools": found, "loaded": [name for name, _ in hits] if self.options.auto_load else []}

        async def load(given: Any, context: Any) -> Any:
            name = given["name"]
            if name not in tools:
                return {"loaded": [], "message": f"There is no tool called {name}. Search for it first."}
            loaded.add(name)
            return {"loaded": [name], "message": f"You can call {name} from your next step on."}

        query = {"type": "object", "properties": {"query": {"type": "string", "maxLength": 500}}, "required": ["query"], "additionalProperties": False}  # fmt: skip
        named = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 200}}, "required": ["name"], "additionalProperties": False}  # fmt: skip
        tools_for_model = [MetaTool(SEARCH, "Find tools by what they do.", query, search)]
        if not self.options.auto_load:
            tools_for_model.append(MetaTool(LOAD, "Make a tool available by its name.", named, load))
        return tools_for_model


def _named(tools: Any) -> dict[str, Any]:
    return dict(tools) if isinstance(tools, dict) else {tool.name: tool for tool in tools}


def _loaded_before(args: ProcessInputStepArgs) -> set[str]:
    """Tools that earlier turns of the conversation loaded."""
    found: set[str] = set()
    for message in args.messages:
        for part in message.content.parts:
            call = part.get("toolInvocation") if part.get("type") == "tool-invocation" else None
            if call and call.get("toolName") in (SEARCH, LOAD) and isinstance(call.get("result"), dict):
                found.update(name for name in call["result"].get("loaded") or () if isinstance(name, str))
    return found


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> ToolSearch:
        return ToolSearch(id, options)

    registry.register(ProcessorKind(
        slug=SLUG, title="Tool search", description="Hides an agent's many tools behind a search, so that the model is not drowned in them.",
        options=ToolSearchOptions, factory=build, stages=frozenset({"input"}), group="Plumbing",
    ))  # fmt: skip
