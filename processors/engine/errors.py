"""Every error of the engine, split by who must act.

    GatehouseError
    ├── ContractError     the author of a processor: a hook broke the contract
    ├── ConfigError       the admin: a chain, an option or a credential cannot work as configured
    ├── ModelAPIError     the model's provider refused or broke off; `retryable` says whether again may help
    ├── ToolFailed        the model: a tool refused its arguments or failed; the model is told and may go on
    ├── BudgetExceeded    the caller: a limit on steps, tokens, time or cost was reached
    ├── StructuredOutputInvalid  the model: its answer does not fit the schema the caller gave
    ├── AuditUnavailable  the operator: a violation could not be recorded, so the run stopped
    ├── ProcessorFailed   the operator: a processor raised; nothing unscanned was delivered
    └── RunCancelled      nobody: the caller stopped the run
TripWire (tripwire.py) is no error: it is a verdict.

`code` is stable and appears in APIs and frames; `retryable` tells a client whether the same call may succeed later.
HTTP status, retry and audit are decided from these two in one table.
"""

from __future__ import annotations

from typing import Any


class GatehouseError(Exception):
    """The root of our errors."""

    code: str = "internal_error"
    retryable: bool = False


class ContractError(GatehouseError):
    """A hook returned, emitted or asked for something the contract does not allow.

    processor_id, hook: where it happened. returned: a short description of what came back. allowed: what may come back.
    """

    code = "processor_contract"

    def __init__(self, processor_id: str, hook: str, returned: str, allowed: str) -> None:
        super().__init__(
            f"Processor {processor_id!r} broke the contract of {hook}: it returned {returned}. Allowed: {allowed}."
        )
        self.processor_id, self.hook, self.returned, self.allowed = processor_id, hook, returned, allowed


class ConfigError(GatehouseError):
    """Something in the configuration cannot work; the message says what to change."""

    code = "configuration"


class ModelAPIError(GatehouseError):
    """The provider rejected a call, could not be reached, or its stream broke.

    status: the HTTP status, None when there was no answer. retry_after: seconds, from the Retry-After header.
    provider_code: the provider's own code, such as "insufficient_quota".
    """

    code = "model_api"

    def __init__(
        self, message: str, *, status: int | None = None, retryable: bool = False, retry_after: float | None = None,
        provider_code: str | None = None, body: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.message = message
        self.status, self.retryable, self.retry_after = status, retryable, retry_after
        self.provider_code, self.body = provider_code, body


class ToolFailed(GatehouseError):
    """A tool could not do what was asked. The message goes to the model as the tool's error."""

    code = "tool_failed"


class BudgetExceeded(GatehouseError):
    """A limit of the run was reached. `limit` names it: steps, tokens, seconds or cost."""

    code = "budget_exceeded"

    def __init__(self, limit: str, used: float, allowed: float) -> None:
        super().__init__(f"The run's {limit} limit is reached ({used:g} of {allowed:g}).")
        self.limit, self.used, self.allowed = limit, used, allowed


class StructuredOutputInvalid(GatehouseError):
    """A structured answer is no JSON or does not fit its schema, and no retry is left."""

    code = "structured_output"
    retryable = True


class AuditUnavailable(GatehouseError):
    """A violation could not be written to the audit trail, so the run was stopped."""

    code = "audit_unavailable"
    retryable = True


class ProcessorFailed(GatehouseError):
    """A processor raised in a hook and is set to block on errors. The cause is chained."""

    code = "processor_failed"

    def __init__(self, processor_id: str, hook: str, cause: BaseException) -> None:
        super().__init__(f"Processor {processor_id!r} failed in {hook}: {type(cause).__name__}: {cause}")
        self.processor_id, self.hook = processor_id, hook


class RunCancelled(GatehouseError):
    """The caller stopped the run."""

    code = "cancelled"
