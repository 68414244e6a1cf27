"""A process that answers people and is killed while it does: `python -m tests.faults.dying_process`.

It loads Django once. For each line on stdin (milliseconds) it forks a child that begins conversations, and kills it with SIGKILL
that much later. On stdout it says which runs the child had acknowledged, as one line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

TALKS = 4
SECRET, TRANSIENT = "persimmon", "part 1 of"


def conversations(acknowledge: int) -> None:
    """Begin talks until the end comes; write each run's id to the pipe as soon as it is stored."""
    from accounts.models import User
    from agents.services.runs import run_launch, run_start

    alice = User.objects.get(username="alice")
    number = 0
    while True:
        for _talk in range(TALKS):
            run = run_start(user=alice, agent_slug="helper", text=f"Message {number}", channel="test")
            os.write(acknowledge, f"{run.pk}\n".encode())
            run_launch(run)
            number += 1
        time.sleep(0.08)


def answers(request: Any) -> Any:
    """A tool with a side effect, a tool with progress, then words; every third answer is one that the chain refuses."""
    from agents.providers.scripted import says, tool_call

    tools = sum(1 for message in request.prompt if message["role"] == "tool")
    number = int(request.prompt[0]["content"][0]["text"].split()[-1])
    if tools == 0:
        return [*says("Let me look it up for you. "), tool_call("count", {"number": number}, "call-1")]
    if tools == 1:
        return [tool_call("slow_report", {"seconds": 0.05}, "call-2")]
    return says(
        f"Here is a {SECRET} for you." if number % 3 == 0 else "Here is an apple for you, and a pear as well."
    )


def prepare() -> None:
    """What tests and children both need: the script and the tool that counts its effects in Redis."""
    from agents.providers.catalog import register_script
    from agents.providers.scripted import ScriptedModel
    from agents.redis_link import redis_client
    from agents.tools import kinds

    def count(args: dict[str, Any], options: dict[str, Any], job: Any) -> Any:
        redis_client().hincrby("faults", f"{job.call_id}:{args['number']}", 1)
        return {"counted": args["number"]}

    register_script("test", lambda: ScriptedModel("scripted/test", answers, cut=4, pace=0.004))
    if "counting" not in kinds._kinds:
        kinds.tool_register(kinds.ToolKind("counting", "Counting", "Counts.", {"type": "object"}, count))


def one_life(milliseconds: int) -> list[str]:
    """Fork, let it work, kill it. Returns the ids that it had acknowledged."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            conversations(writing)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        first = pipe.readline()  # it lives
        time.sleep(milliseconds / 1000)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return [first.strip(), *(line.strip() for line in pipe if line.endswith("\n"))]


def main() -> None:
    import django

    django.setup()
    prepare()
    for line in sys.stdin:
        print(json.dumps(one_life(int(line))), flush=True)


if __name__ == "__main__":
    main()
