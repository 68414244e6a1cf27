"""What a new installation begins with. Made once: what an admin has changed or deleted since stays as it is."""

from __future__ import annotations

from typing import Any, Final

LOCAL_INSTRUCTIONS: Final = (
    "You are a friendly assistant. Answer in short, plain sentences. If you do not know something, say so."
)
PRACTICE_INSTRUCTIONS: Final = "You are the practice agent of Gatehouse. You follow a script. The pass phrase of this installation is blue heron."

GUARDRAILS: Final[tuple[dict[str, Any], ...]] = (
    {"slug": "tidy-text", "name": "Tidy text", "kind": "unicode-normalizer", "options": {}, "note": "Takes hidden characters out of messages."},
    {
        "slug": "personal-data", "name": "Personal data", "kind": "pii-detector", "options": {}, "severity": "medium",
        "note": "Replaces e-mail addresses, phone numbers and card numbers, both in what people write and in answers.",
    },
    {
        "slug": "forbidden-words", "name": "Forbidden words", "kind": "block-list", "severity": "high",
        "options": {"words": ["bananas", "project nightingale"], "strategy": "block"},
        "public_message": "This conversation touches something that we do not talk about here.",
        "note": "Sample words; put your own here.",
    },
    {
        "slug": "prompt-injection", "name": "Manipulation attempts", "kind": "prompt-injection-detector", "options": {}, "severity": "high",
        "public_message": "Your message looks like an attempt to change how the assistant works. Please say it differently.",
    },
    {"slug": "instructions-stay", "name": "Instructions stay secret", "kind": "system-prompt-scrubber", "options": {}, "severity": "medium"},
    {"slug": "retry-provider", "name": "Try again when the provider is busy", "kind": "stream-error-retry", "options": {}, "severity": "low"},
)  # fmt: skip
"""A guardrail whose kind is not installed, or whose options its kind refuses, is left out."""

TOOLS: Final[tuple[dict[str, Any], ...]] = (
    {"slug": "calculator", "name": "Calculator", "kind": "calculator"},
    {"slug": "clock", "name": "Clock", "kind": "clock"},
    {"slug": "order_lookup", "name": "Order look-up", "kind": "order-lookup"},
    {"slug": "order_refund", "name": "Refund", "kind": "order-refund", "needs_approval": True},
    {
        "slug": "slow_report",
        "name": "Slow report",
        "kind": "slow-report",
        "mode": "queue",
        "is_idempotent": True,
        "time_limit": 120,
    },
)

AGENTS: Final[tuple[dict[str, Any], ...]] = (
    {
        "slug": "assistant", "name": "Assistant", "description": "A small model on this machine. Ask it anything simple; it is no genius.",
        "instructions": LOCAL_INSTRUCTIONS, "model": "local/smollm2", "temperature": 0.3, "max_output_tokens": 300, "history_messages": 10,
        "input": ("tidy-text", "prompt-injection", "personal-data", "forbidden-words"), "output": ("personal-data", "forbidden-words"), "error": ("retry-provider",),
        "tools": (),
    },
    {
        "slug": "practice", "name": "Practice", "description": "Follows a script and shows what guardrails and tools do. Say “help”.",
        "instructions": PRACTICE_INSTRUCTIONS, "model": "scripted/practice", "max_processor_retries": 1,
        "input": ("tidy-text", "prompt-injection", "personal-data"), "output": ("instructions-stay", "personal-data", "forbidden-words"), "error": ("retry-provider",),
        "tools": ("calculator", "clock", "order_lookup", "order_refund", "slow_report"),
    },
)  # fmt: skip
PRO: Final[dict[str, Any]] = {
    "slug": "pro", "name": "Pro", "description": "A large model of a provider, with the same guardrails.", "instructions": LOCAL_INSTRUCTIONS,
    "input": ("tidy-text", "prompt-injection", "personal-data", "forbidden-words"), "output": ("personal-data", "forbidden-words"), "error": ("retry-provider",),
    "tools": ("calculator", "clock"),
}  # fmt: skip
PRO_MODELS: Final = {
    "openai": "openai/gpt-5-mini",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "gemini": "gemini/gemini-2.5-flash",
}
"""First provider with a key in the environment → the model of the third agent."""
