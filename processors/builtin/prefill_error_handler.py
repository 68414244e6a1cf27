"""Some models refuse a conversation that ends with the assistant's own words. This adds a short "go on" and tries again."""

from __future__ import annotations

import re
from typing import Any, Final

from pydantic import Field

from processors.engine.errors import ModelAPIError
from processors.engine.hooks import ProcessAPIErrorArgs
from processors.engine.messages import user_message
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "prefill-error-handler"
REFUSAL: Final = re.compile(r"prefill|must end with a user message|last message (?:must|cannot|should|role)|final (?:turn|message) must be", re.IGNORECASE)  # fmt: skip


class PrefillErrorHandlerOptions(Options):
    """What the added message says."""

    text: str = Field("Continue.", title="Added message", description="Sent as the person's message for this answer only; never stored.", min_length=1, max_length=500)  # fmt: skip


class PrefillErrorHandler(Processor):
    """Acts once a run, and only if the conversation really ends with the assistant."""

    def __init__(self, id: str, options: PrefillErrorHandlerOptions) -> None:
        super().__init__(id)
        self._text = options.text

    def process_api_error(self, args: ProcessAPIErrorArgs) -> dict[str, bool] | None:
        error = args.error
        if (
            not isinstance(error, ModelAPIError)
            or error.status not in (400, 422)
            or not REFUSAL.search(str(error))
        ):
            return None
        if args.state.get("done") or not args.messages or args.messages[-1].role != "assistant":
            return None
        args.state["done"] = True
        args.message_list.add(user_message(self._text), "context")
        return {"retry": True}


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> PrefillErrorHandler:
        return PrefillErrorHandler(id, options)

    registry.register(ProcessorKind(
        slug=SLUG, title="Models that want the last word from people", description="Adds “Continue.” and tries again when a model refuses to go on from the assistant's own words.",
        options=PrefillErrorHandlerOptions, factory=build, stages=frozenset({"error"}), group="Plumbing",
    ))  # fmt: skip
