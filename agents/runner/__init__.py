"""The runner: one thread per process with an event loop of its own, in which runs live. Whoever watches may come and go."""

from agents.runner.loop import RunnerLoop, runner, runner_close

__all__ = ["RunnerLoop", "runner", "runner_close"]
