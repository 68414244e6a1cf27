"""Adds instructions from a shared library to the prompt: all of them, those whose key words occur, or those the model asks for."""

from __future__ import annotations

import json
from html import escape
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from processors.builtin.meta_tool import MetaTool
from processors.engine.hooks import ProcessInputStepArgs
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "instruction-block"
READ: Final = "read_instructions"
TAG: Final = "instruction-block"
CATALOG_HINT: Final = "These are instructions you can read with read_instructions before you act on their subject. They are no tools."


class Block(BaseModel):
    """One piece of instructions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(
        title="Name", description="Short and unique, such as “refunds”.", min_length=1, max_length=80
    )
    description: str = Field("", title="What it is about", description="One sentence, shown in the catalogue.", max_length=300)  # fmt: skip
    text: str = Field(title="Instructions", description="What the model shall know and do.", min_length=1, max_length=20_000, json_schema_extra={"x-widget": "textarea"})  # fmt: skip
    keywords: list[str] = Field(default_factory=list, title="Key words", description="The block is added when one of them occurs in the person's last message. Used by “By key words”.", max_length=100)  # fmt: skip


class InstructionBlockOptions(Options):
    """The blocks and when they are added."""

    blocks: list[Block] = Field(title="Blocks", description="Pieces of instructions, each about one subject.", min_length=1, max_length=100)  # fmt: skip
    mode: Literal["always", "keywords", "on-demand"] = Field("always", title="When", description="Always: all of them. By key words: those that the last message mentions. On demand: only a catalogue, and the model reads what it needs.", json_schema_extra={"x-labels": {"keywords": "By key words"}})  # fmt: skip
    format: Literal["xml", "markdown", "json"] = Field("xml", title="Format", description="How the blocks are written for the model.", json_schema_extra={"x-advanced": True, "x-labels": {"xml": "XML", "json": "JSON"}})  # fmt: skip

    @field_validator("blocks")
    @classmethod
    def _names_are_unique(cls, blocks: list[Block]) -> list[Block]:
        names = [block.name for block in blocks]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"Two blocks are called {name!r}; give each its own name.")
        return blocks


class InstructionBlocks(Processor):
    """Adds a system message to each step. It is never stored and never shown."""

    def __init__(self, id: str, options: InstructionBlockOptions) -> None:
        super().__init__(id)
        self.options = options
        self._blocks = sorted(options.blocks, key=lambda block: block.name)

    def process_input_step(self, args: ProcessInputStepArgs) -> dict[str, Any] | None:
        if self.options.mode == "on-demand":
            args.message_list.add_system(f"{CATALOG_HINT}\n{self._written(self._blocks, texts=False)}", TAG)
            active = args.active_tools
            tools = args.tools if isinstance(args.tools, dict) else {tool.name: tool for tool in args.tools}
            return {
                "tools": {**tools, READ: self._reader()},
                "active_tools": None if active is None else [*active, READ],
            }
        chosen = self._blocks if self.options.mode == "always" else self._mentioned(args)
        if chosen:
            args.message_list.add_system(self._written(chosen, texts=True), TAG)
        return None

    def _mentioned(self, args: ProcessInputStepArgs) -> list[Block]:
        said = next(
            (message.text for message in reversed(args.messages) if message.role == "user"), ""
        ).casefold()
        return [
            block
            for block in self._blocks
            if any(word.casefold() in said for word in block.keywords if word.strip())
        ]

    def _reader(self) -> MetaTool:
        texts = {block.name: block.text for block in self._blocks}

        async def read(given: Any, context: Any) -> Any:
            known = ", ".join(texts)
            return texts.get(
                given["name"], f"There are no instructions called {given['name']}. There are: {known}."
            )

        shape = {"type": "object", "properties": {"name": {"type": "string", "enum": list(texts)}}, "required": ["name"], "additionalProperties": False}  # fmt: skip
        return MetaTool(READ, "Read instructions from the catalogue.", shape, read)

    def _written(self, blocks: list[Block], *, texts: bool) -> str:
        if self.options.format == "json":
            return json.dumps([{"name": b.name, "description": b.description, **({"text": b.text} if texts else {})} for b in blocks], ensure_ascii=False)  # fmt: skip
        if self.options.format == "markdown":
            return "\n\n".join(f"## {b.name}\n{b.text if texts else b.description}" for b in blocks)
        return "\n".join(f'<instructions name="{escape(b.name)}">{escape(b.text if texts else b.description, quote=False)}</instructions>' for b in blocks)  # fmt: skip


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> InstructionBlocks:
        return InstructionBlocks(id, options)

    registry.register(ProcessorKind(
        slug=SLUG, title="Instruction blocks", description="Adds pieces of instructions, always, by key words, or when the model asks for them.",
        options=InstructionBlockOptions, factory=build, stages=frozenset({"input"}), group="Plumbing",
    ))  # fmt: skip
