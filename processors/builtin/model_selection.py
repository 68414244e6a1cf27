"""Lets a small model choose which model answers: a cheap one for small talk, a strong one for hard questions."""

from __future__ import annotations

import logging
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from processors.builtin.judge import DEFAULT_TIMEOUT, Judge, JudgeError, ModelName, resolved_model
from processors.engine.hooks import ProcessInputStepArgs
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "model-selection"

log = logging.getLogger("gatehouse.builtin")


class ModelChoice(BaseModel):
    """A model and what it is good for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: ModelName = Field(title="Model", description="provider/name")
    use_for: str = Field(title="Use it for", description="In plain words, such as “greetings and short factual questions”.", min_length=1, max_length=500)  # fmt: skip


class Selection(BaseModel):
    """choice: the number of the best fitting entry. probability: how sure that is, 0 to 1."""

    choice: int
    probability: float = Field(ge=0, le=1)


class ModelSelectionOptions(Options):
    """The models to choose from and the model that chooses."""

    model: ModelName = Field(title="Model that chooses", description="provider/name; a small, fast one.")
    choices: list[ModelChoice] = Field(title="Models to choose from", description="At least two.", min_length=2, max_length=20)  # fmt: skip
    min_probability: float = Field(0.5, title="Surety", description="Below this, 0 to 1, the agent's own model answers.", ge=0, le=1)  # fmt: skip
    scope: Literal["run", "first-step"] = Field("run", title="Applies to", description="Run: every step of the answer. First step: only the first model call.")  # fmt: skip
    instructions: str = Field("", title="Further instructions", description="What else should be considered.", max_length=4000, json_schema_extra={"x-widget": "textarea"})  # fmt: skip
    on_failure: Literal["keep", "fail"] = Field("keep", title="When choosing fails", description="Keep: the agent's own model answers. Fail: count it as an error of this processor.", json_schema_extra={"x-advanced": True})  # fmt: skip
    timeout: float = Field(DEFAULT_TIMEOUT, title="Time-out", description="Seconds that choosing may take.", gt=0, le=300, json_schema_extra={"x-advanced": True})  # fmt: skip


class ModelSelection(Processor):
    """Chooses once per run, by the person's last message."""

    def __init__(self, id: str, options: ModelSelectionOptions, context: BuildContext) -> None:
        super().__init__(id)
        self.options = options
        self._models = [resolved_model(choice.model, context) for choice in options.choices]
        listed = "\n".join(f"{number}. {choice.use_for}" for number, choice in enumerate(options.choices, 1))
        self._judge = Judge(
            resolved_model(options.model, context),
            f"Choose the entry that fits the text best, by its number.\n{listed}\n{options.instructions}",
            Selection, timeout=options.timeout, budget=200,
        )  # fmt: skip

    async def process_input_step(self, args: ProcessInputStepArgs) -> dict[str, Any] | None:
        if self.options.scope == "first-step" and args.step_number > 0:
            return None
        if "chosen" not in args.state:
            args.state["chosen"] = await self._choose(args)
        chosen: int | None = args.state["chosen"]
        return None if chosen is None else {"model": self._models[chosen]}

    async def _choose(self, args: ProcessInputStepArgs) -> int | None:
        text = next(
            (message.text for message in reversed(args.messages) if message.role == "user" and message.text),
            "",
        )
        if not text:
            return None
        try:
            selection = await self._judge.ask(text[-self._judge.max_chars :], signal=args.abort_signal)
            if not 1 <= selection.choice <= len(self._models):
                raise JudgeError(
                    f"The model that chooses named entry {selection.choice}, which does not exist."
                )
        except JudgeError:
            if self.options.on_failure == "fail":
                raise
            log.warning("%r could not choose a model; the agent's own answers", self.id, exc_info=True)
            return None
        return selection.choice - 1 if selection.probability >= self.options.min_probability else None


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> ModelSelection:
        return ModelSelection(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Choose the model", description="A small model decides which model answers a message.",
        options=ModelSelectionOptions, factory=build, stages=frozenset({"input"}), group="Plumbing",
    ))  # fmt: skip
