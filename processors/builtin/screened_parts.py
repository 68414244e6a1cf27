"""Text that comes in several parts, and tool arguments that the tool may see while people may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from processors.builtin.detectors.findings import Region, merge, replace_regions
from processors.builtin.detectors.holdback import Matcher
from processors.engine.messages import Part


class ToolArguments(dict[str, Any]):
    """Arguments as everybody sees them. `for_tool`: what the tool itself is called with.

    Everything that shows, stores or sends arguments uses the dictionary, so a reader that does not know this class
    errs on the safe side.
    """

    __slots__ = ("for_tool",)

    def __init__(self, shown: dict[str, Any], *, for_tool: dict[str, Any]) -> None:
        super().__init__(shown)
        self.for_tool = for_tool


Found = tuple[str, list[Region], list[tuple[Part, str]]]


def screen_text_parts(
    matcher: Matcher, parts: list[Part], replace: Callable[[Region, str], str] | None, *, joined: bool
) -> Iterator[Found]:
    """Screen each part by itself, then (`joined`) all of them as the one text that a model reads.

    Yields (searched text, regions, [(part, its new text)]) for each search that found something. Apply the new texts
    before going on.
    """
    for part in parts:
        text = part["text"]
        regions = merge(matcher.find(text, 0))
        if regions:
            yield (
                text,
                regions,
                [(part, replace_regions(text, regions, replace))] if replace is not None else [],
            )
    if not joined or len(parts) < 2:
        return
    whole = "".join(part["text"] for part in parts)
    regions = [region for region in merge(matcher.find(whole, 0)) if _spans(parts, region)]
    if regions:
        yield whole, regions, _split(parts, regions, whole, replace) if replace is not None else []


def _spans(parts: list[Part], region: Region) -> bool:
    """Whether the region touches more than one part: the others have been dealt with."""
    at = 0
    for part in parts:
        end = at + len(part["text"])
        if at <= region.start < end:
            return region.end > end
        at = end
    return True


def _split(parts: list[Part], regions: list[Region], whole: str, replace: Callable[[Region, str], str]) -> list[tuple[Part, str]]:  # fmt: skip
    """The parts' new texts: a region's replacement stands in the part where it begins."""
    edited, at = [], 0
    for part in parts:
        end = at + len(part["text"])
        pieces, position = [], at
        for region in regions:
            if region.end <= at or region.start >= end:
                continue
            if region.start >= at:
                pieces += [whole[position : region.start], replace(region, whole[region.start : region.end])]
            position = min(region.end, end)
        pieces.append(whole[position:end])
        edited.append((part, "".join(pieces)))
        at = end
    return edited
