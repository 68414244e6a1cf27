"""Keeps answers from carrying data away: images, links and markup that point to places that are not allowed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from processors.builtin.detectors.candidates import Candidate, CandidateMatcher, Span
from processors.builtin.detectors.findings import Region
from processors.builtin.screening import Screen, ScreenOptions, Strategy
from processors.engine.ports import BuildContext
from processors.engine.registry import ProcessorKind, Registry

SLUG: Final = "link-guard"
LinkPolicy = Literal["any", "no-data", "allowed-only"]

_TARGET: Final = r"<?[^\s<>)\"']{1,2000}>?(?:[ \n][\"'(][^\"'\n)]{0,200}[\"')])? ?"
_URL: Final = (
    r"(?<![A-Za-z0-9])(?:[Hh][Tt][Tt][Pp][Ss]?|[Ff][Tt][Pp]|[Ww][Ss]{1,2})://[^\s<>\"'`\[\]{}|^]{1,2000}"
)
_INNER: Final = re.compile(r"\]\(\s*<?([^\s<>)\"']+)|\]:\s*<?(\S+)|(?:src|href|action|srcset|data|poster|background)\s*=\s*[\"']?([^\s\"'>]+)|url\(['\"]?([^)'\"]+)", re.I)  # fmt: skip
_DATA_LIKE: Final = re.compile(r"[A-Za-z0-9+/_=%-]{40,}")
_HOST: Final = re.compile(r"(?:\*\.)?(?:[a-z0-9-]+\.)*[a-z0-9-]+(?::\d+)?")


class LinkGuardOptions(ScreenOptions):
    """Where answers may point."""

    allowed_domains: list[str] = Field(default_factory=list, title="Allowed domains", description="One per line, such as example.org; its subdomains are allowed with it.", max_length=1000)  # fmt: skip
    images: Literal["allowed-only", "none", "any"] = Field("allowed-only", title="Images", description="A picture is fetched as soon as it is shown, and its address can carry away what the model knows.", json_schema_extra={"x-labels": {"allowed-only": "From allowed domains only", "none": "None", "any": "Any (not recommended)"}})  # fmt: skip
    links: LinkPolicy = Field("no-data", title="Links", description="Links to other domains: any, only those that carry no data (long parameters), or none.", json_schema_extra={"x-labels": {"any": "Any", "no-data": "Without data in the address", "allowed-only": "To allowed domains only"}})  # fmt: skip
    max_query: int = Field(80, title="Longest parameters", description="Characters of parameters (behind ? or #) that a link to another domain may have.", ge=0, le=2000, json_schema_extra={"x-show-if": {"links": ["no-data"]}})  # fmt: skip
    html: bool = Field(True, title="Refuse active markup", description="Images, frames, scripts, forms and styles written as HTML.")  # fmt: skip
    strategy: Strategy = Field("redact", title="What to do", description="Take the links out, block the run, ask for another answer, withhold the rest, or only report.", json_schema_extra={"x-labels": {"redact": "Take them out", "retry": "Ask for another answer"}})  # fmt: skip

    @field_validator("allowed_domains")
    @classmethod
    def _domains_are_names(cls, domains: list[str]) -> list[str]:
        names = []
        for domain in domains:
            name = domain.strip().lower().removeprefix("https://").removeprefix("http://").rstrip("/").removeprefix("*.")  # fmt: skip
            if not _HOST.fullmatch(name):
                raise ValueError(
                    f"{domain!r} is no domain; write a name such as example.org, without a path."
                )
            names.append(name)
        return names


class _Addresses:
    """Decides about addresses by these options."""

    def __init__(self, options: LinkGuardOptions) -> None:
        self.options = options

    def allowed(self, address: str) -> bool:
        """Whether the address points to an allowed domain. What cannot be read as one does not."""
        try:
            parts = urlsplit(address if "://" in address else f"https://{address.lstrip('/')}" if address.startswith("//") else address)  # fmt: skip
            host, port = (parts.hostname or "").rstrip("."), parts.port
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or parts.username or "\\" in address:
            return False
        names = (host, f"{host}:{port}" if port else host)
        return any(name == domain or name.endswith(f".{domain}") for name in names for domain in self.options.allowed_domains)  # fmt: skip

    def relative(self, address: str) -> bool:
        return not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|//|\\", address)

    def link_passes(self, address: str) -> bool:
        if self.options.links == "any" or self.relative(address) or address.lower().startswith("mailto:"):
            return not address.lower().startswith(("javascript:", "data:", "vbscript:", "file:"))
        if self.allowed(address):
            return True
        return self.options.links == "no-data" and self._carries_no_data(address)

    def _carries_no_data(self, address: str) -> bool:
        try:
            parts = urlsplit(address)
            host = parts.hostname or ""
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or parts.username or max(map(len, host.split("."))) > 40:
            return False
        return len(parts.query) + len(parts.fragment) <= self.options.max_query and not _DATA_LIKE.search(
            parts.path
        )

    def image(self, text: str, start: int, end: int) -> Span | None:
        policy = self.options.images
        if policy == "any":
            return None
        addresses = _addresses_in(text[start:end])
        fine = (
            policy != "none"
            and bool(addresses)
            and all(self.allowed(a) or self.relative(a) for a in addresses)
        )
        return None if fine else (start, end)

    def link(self, text: str, start: int, end: int) -> Span | None:
        return (
            None
            if all(self.link_passes(address) for address in _addresses_in(text[start:end]))
            else (start, end)
        )

    def bare(self, text: str, start: int, end: int) -> Span | None:
        address = text[start:end].rstrip(".,;:!?)*_")
        return None if self.link_passes(address) else (start, start + len(address))

    def markup(self, text: str, start: int, end: int) -> Span | None:
        return (start, end) if self.options.html else self.image(text, start, end)


def _addresses_in(text: str) -> list[str]:
    return [next(group for group in match.groups() if group) for match in _INNER.finditer(text)]


def _formats(addresses: _Addresses) -> list[Candidate]:
    check: Callable[[str, int, int], Span | None] = addresses.image
    return [
        Candidate("image", "picture", rf"!\[[^\]\n]{{0,300}}\]\( ?{_TARGET}\)", check, r"!\["),
        Candidate("image", "picture by reference", r"!\[[^\]\n]{0,300}\]\[[^\]\n]{0,100}\]", lambda text, start, end: (start, end) if addresses.options.images != "any" else None, r"!\["),
        Candidate("markup", "HTML", r"</?(?:[Ii][Mm][Gg]|[Ii][Ff][Rr][Aa][Mm][Ee]|[Ss][Cc][Rr][Ii][Pp][Tt]|[Ll][Ii][Nn][Kk]|[Oo][Bb][Jj][Ee][Cc][Tt]|[Ee][Mm][Bb][Ee][Dd]|[Ss][Oo][Uu][Rr][Cc][Ee]|[Vv][Ii][Dd][Ee][Oo]|[Aa][Uu][Dd][Ii][Oo]|[Ss][Vv][Gg]|[Ff][Oo][Rr][Mm]|[Ii][Nn][Pp][Uu][Tt]|[Bb][Aa][Ss][Ee]|[Ss][Tt][Yy][Ll][Ee]|[Mm][Ee][Tt][Aa])(?:[\s/][^>]{0,3000})?>", addresses.markup, "<"),
        Candidate("link", "link", rf"\[[^\]\n]{{1,300}}\]\( ?{_TARGET}\)", addresses.link, r"\]\("),
        Candidate("link", "link target", r"(?<![^\n])\[[^\]\n]{1,200}\]: {0,3}<?[^\s<>]{1,2000}", addresses.link, r"\]:"),
        Candidate("link", "address", _URL, addresses.bare, "://"),
        Candidate("link", "script address", r"(?<![A-Za-z])(?:[Jj]ava[Ss]cript|[Vv][Bb][Ss]cript|data):[^\s)>\"']{3,2000}", lambda text, start, end: (start, end), "cript:|data:"),
    ]  # fmt: skip


class LinkGuard(Screen):
    """Works on the text itself, so it holds on every road: chat page, API, e-mail, whatever renders it."""

    subject = "A link that is not allowed"

    def __init__(self, id: str, options: LinkGuardOptions, context: BuildContext) -> None:
        super().__init__(
            id,
            options,
            CandidateMatcher(
                _formats(_Addresses(options)), signs=r"[\[!<:/]", word="[A-Za-z]", gate=r"[\[!<:]"
            ),
            context,
        )

    def redaction(self, region: Region, text: str) -> str:
        if region.owner.type == "image":
            return "[image removed]"
        if region.owner.type == "markup":
            return "[markup removed]"
        label = re.match(r"\[([^\]\n]{1,300})\]\(", text)
        return f"{label[1]} [link removed]" if label and "://" not in label[1] else "[link removed]"

    def reason(self, types: Sequence[str], rules: Sequence[str]) -> str:
        return f"The text points to a place that is not allowed: {', '.join(types)}."


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> LinkGuard:
        return LinkGuard(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Links and images", description="Takes out images, links and markup that could carry data away to other domains.",
        options=LinkGuardOptions, factory=build, stages=frozenset({"input", "output"}), redacts=True, group="Attacks",
    ))  # fmt: skip
