"""What requests may contain and what answers look like. Names are camelCase on the wire, as in chunks."""

from __future__ import annotations

from typing import Any

from django.db.models import Model
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.models import User
from accounts.policies import PERMISSIONS, can
from agents.models import Agent, Run, ToolCall
from audit.models import Violation
from audit.selectors import COLUMNS
from memory.models import Message, Thread


def camel(name: str) -> str:
    """`created_at` → `createdAt`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


class Wire(serializers.ModelSerializer[Any]):
    """A model's fields under camelCase names."""

    def get_fields(self) -> dict[str, Any]:
        fields = {}
        for name, field in super().get_fields().items():
            if (
                camel(name) != name
                and field.source is None
                and not isinstance(field, serializers.SerializerMethodField)
            ):
                field.source = name
            fields[camel(name)] = field
        return fields


class AgentSerializer(Wire):
    version = serializers.IntegerField(source="published.number")

    class Meta:
        model: type[Model] = Agent
        fields = ("slug", "name", "description", "version")


class ThreadSerializer(Wire):
    agent = serializers.SlugField(source="agent_slug", read_only=True)

    class Meta:
        model: type[Model] = Thread
        fields = ("id", "agent", "title", "created_at", "updated_at")


class NewThreadSerializer(serializers.Serializer[Any]):
    agent = serializers.CharField(max_length=100)
    title = serializers.CharField(required=False, allow_blank=True, max_length=200, default="")


class TitleSerializer(serializers.Serializer[Any]):
    title = serializers.CharField(max_length=200)


class MessageSerializer(Wire):
    class Meta:
        model: type[Model] = Message
        fields = ("id", "run_id", "position", "role", "parts", "status", "withheld", "created_at")


class MessagesSerializer(serializers.Serializer[Any]):
    results = MessageSerializer(many=True)
    activeRun = serializers.UUIDField(allow_null=True)


class MessagesQuerySerializer(serializers.Serializer[Any]):
    after = serializers.IntegerField(
        required=False, min_value=0, help_text="Only messages after this position."
    )
    limit = serializers.IntegerField(required=False, min_value=1, max_value=1000, default=200)


class ApprovalSerializer(Wire):
    tool_call_id = serializers.CharField(source="call_id")
    tool_name = serializers.CharField(source="tool_slug")

    class Meta:
        model: type[Model] = ToolCall
        fields = ("tool_call_id", "tool_name", "args")


class RunSerializer(Wire):
    agent = serializers.SlugField(source="agent.slug", read_only=True)
    version = serializers.IntegerField(source="version.number", read_only=True, allow_null=True, default=None)
    thread_id = serializers.UUIDField(read_only=True, allow_null=True)
    message_id = serializers.UUIDField(source="input_message_id", read_only=True, allow_null=True)
    approvals = serializers.SerializerMethodField(
        method_name="open_approvals", help_text="Tool calls that wait for a decision."
    )

    class Meta:
        model: type[Model] = Run
        fields = (
            "id", "agent", "version", "thread_id", "message_id", "channel", "status", "text", "finish_reason", "tripwire",
            "error", "usage", "approvals", "created_at", "started_at", "finished_at",
        )  # fmt: skip

    @extend_schema_field(ApprovalSerializer(many=True))
    def open_approvals(self, run: Run) -> Any:
        if run.status != Run.Status.WAITING:
            return []
        waiting = run.tool_calls.filter(status=ToolCall.Status.APPROVAL, decision__isnull=True)
        return ApprovalSerializer(waiting, many=True).data


class RunRequestSerializer(serializers.Serializer[Any]):
    agent = serializers.CharField(max_length=100, help_text="The agent's short name.")
    input = serializers.CharField(trim_whitespace=False, allow_blank=True, help_text="What the person says.")
    threadId = serializers.UUIDField(
        required=False, allow_null=True, help_text="Left out: a new conversation begins."
    )
    wait = serializers.BooleanField(default=False, help_text="Answer when the run has ended.")
    clientMessageId = serializers.CharField(
        required=False, max_length=150, help_text="Repeating it finds the first run."
    )


class DecisionSerializer(serializers.Serializer[Any]):
    toolCallId = serializers.CharField(max_length=200)
    approved = serializers.BooleanField()
    reason = serializers.CharField(required=False, allow_blank=True, max_length=2000, default="")
    args = serializers.JSONField(required=False, default=None, help_text="Other arguments than the model's.")


class ViolationSerializer(Wire):
    class Meta:
        model: type[Model] = Violation
        fields = ("id", *COLUMNS, "matches", "detail")


class ViolationQuerySerializer(serializers.Serializer[Any]):
    """The filters of the audit, typed."""

    agent = serializers.CharField(required=False)
    processor = serializers.CharField(required=False, help_text="The guardrail's short name.")
    kind = serializers.CharField(required=False)
    rule = serializers.CharField(required=False)
    type = serializers.CharField(required=False)
    outcome = serializers.ChoiceField(Violation.Outcome.choices, required=False)
    action = serializers.CharField(required=False)
    severity = serializers.CharField(required=False)
    hook = serializers.CharField(required=False)
    channel = serializers.CharField(required=False)
    version = serializers.IntegerField(required=False)
    user = serializers.IntegerField(required=False)
    run = serializers.UUIDField(required=False)
    thread = serializers.UUIDField(required=False)
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)
    after = serializers.IntegerField(required=False, help_text="Rows after this sequence number.")
    before = serializers.IntegerField(required=False, help_text="Rows before this sequence number.")


class MeSerializer(serializers.ModelSerializer[User]):
    name = serializers.CharField(source="get_username")
    roles = serializers.SerializerMethodField()
    can = serializers.SerializerMethodField(help_text="What this person may do beside chatting.")

    class Meta:
        model = User
        fields = ("id", "name", "roles", "can")

    def get_roles(self, user: User) -> list[str]:
        return sorted(user.groups.values_list("name", flat=True))

    def get_can(self, user: User) -> list[str]:
        return [action for action in (*PERMISSIONS, "tool.approve") if can(user, action)]
