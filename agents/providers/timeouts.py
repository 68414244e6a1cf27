"""How long a model client waits before it gives up."""

from __future__ import annotations

from dataclasses import dataclass

from processors.engine.errors import ConfigError


@dataclass(slots=True, frozen=True)
class Timeouts:
    """All in seconds.

    connect: until the connection stands, name look-up and TLS included.
    first_byte: from the request until the answer begins (a model may think long before it speaks).
    between: the longest silence inside the answer while the reader waits.
    """

    connect: float = 10.0
    first_byte: float = 180.0
    between: float = 60.0

    def __post_init__(self) -> None:
        if min(self.connect, self.first_byte, self.between) <= 0:
            raise ConfigError("Time limits must be greater than 0 seconds.")

    @classmethod
    def short(cls) -> Timeouts:
        """For questions that a person waits for on a page."""
        return cls(connect=5.0, first_byte=10.0, between=10.0)
