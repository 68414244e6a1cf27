"""The limits of one run, in one object."""

from __future__ import annotations

from dataclasses import dataclass

from processors.engine.errors import BudgetExceeded
from processors.engine.hooks import Usage


@dataclass(slots=True, frozen=True)
class Budget:
    """None means no limit. An agent's budget holds for each run anew.

    steps: accepted steps. tokens: total of all attempts, refused ones included. seconds: wall time. cost: what `price`
    says of the usage. price: per token, for input and output.
    """

    steps: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    price: tuple[float, float] = (0.0, 0.0)

    def spent(self, usage: Usage) -> float:
        """The cost of some usage."""
        return usage.input_tokens * self.price[0] + usage.output_tokens * self.price[1]

    def check(self, *, steps: int, usage: Usage, seconds: float = 0.0) -> None:
        """Raises BudgetExceeded when a limit is reached before the next model call."""
        if self.steps is not None and steps >= self.steps:
            raise BudgetExceeded("steps", steps, self.steps)
        if self.tokens is not None and usage.total_tokens >= self.tokens:
            raise BudgetExceeded("tokens", usage.total_tokens, self.tokens)
        if self.cost is not None and self.spent(usage) >= self.cost:
            raise BudgetExceeded("cost", self.spent(usage), self.cost)
        if self.seconds is not None and seconds >= self.seconds:
            raise BudgetExceeded("seconds", seconds, self.seconds)
