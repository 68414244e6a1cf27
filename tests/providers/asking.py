"""Asks a model and keeps what came."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any, cast

from processors.engine.chunks import Chunk
from processors.engine.ports import AbortSignal, LanguageModel, ModelRequest

HELLO = ModelRequest([{"role": "user", "content": [{"type": "text", "text": "Hello"}]}])


async def answer(
    model: LanguageModel, request: ModelRequest = HELLO, *, seen: list[Chunk] | None = None,
    signal: AbortSignal | None = None,
) -> list[Chunk]:  # fmt: skip
    """All chunks. seen: keeps what came before an exception."""
    chunks = [] if seen is None else seen
    async with aclosing(cast("Any", model.stream(request, signal=signal))) as stream:
        async for chunk in stream:
            chunks.append(chunk)
    return chunks


def text_of(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if chunk.type == "text-delta")


def of_type(chunks: list[Chunk], type: str) -> list[dict[str, Any]]:
    """The payloads of the chunks of a type."""
    return [chunk.payload or {} for chunk in chunks if chunk.type == type]
