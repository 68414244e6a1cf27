"""What the API shows and takes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from agents.models import Agent, Run
from audit.models import Violation
from memory.models import Message, Thread


class AgentSerializer(serializers.ModelSerializer[Agent]):
    version = serializers.IntegerField(source="published.number")

    class Meta:
        model = Agent
        fields = ("slug", "name", "description", "version")


class ThreadSerializer(serializers.ModelSerializer[Thread]):
    agent = serializers.SlugField(source="agent_slug")
    createdAt = serializers.DateTimeField(source="created_at", read_only=True)
    updatedAt = serializers.DateTimeField(source="updated_at", read_only=True)

    class Meta:
        model = Thread
        fields = ("id", "agent", "title", "createdAt", "updatedAt")
        read_only_fields = ("id",)


class MessageSerializer(serializers.ModelSerializer[Message]):
    runId = serializers.UUIDField(source="run_id", allow_null=True)
    createdAt = serializers.DateTimeField(source="created_at")

    class Meta:
        model = Message
        fields = ("id", "runId", "position", "role", "parts", "status", "withheld", "createdAt")


class RunSerializer(serializers.ModelSerializer[Run]):
    agent = serializers.SlugField(source="agent.slug", read_only=True)
    version = serializers.IntegerField(source="version.number", read_only=True, allow_null=True, default=None)
    threadId = serializers.UUIDField(source="thread_id", allow_null=True)
    finishReason = serializers.CharField(source="finish_reason")
    createdAt = serializers.DateTimeField(source="created_at")
    finishedAt = serializers.DateTimeField(source="finished_at", allow_null=True)

    class Meta:
        model = Run
        fields = ("id", "agent", "version", "threadId", "channel", "status", "text", "finishReason", "tripwire", "error",
                  "usage", "createdAt", "finishedAt")  # fmt: skip


class RunRequestSerializer(serializers.Serializer[Any]):
    agent = serializers.CharField(max_length=100)
    input = serializers.CharField(trim_whitespace=False)
    threadId = serializers.UUIDField(required=False, allow_null=True)
    wait = serializers.BooleanField(default=False)
    clientMessageId = serializers.CharField(required=False, max_length=150)


class DecisionSerializer(serializers.Serializer[Any]):
    toolCallId = serializers.CharField(max_length=200)
    approved = serializers.BooleanField()
    reason = serializers.CharField(required=False, allow_blank=True, max_length=2000)
    args = serializers.JSONField(required=False)


class ViolationSerializer(serializers.ModelSerializer[Violation]):
    class Meta:
        model = Violation
        exclude = ("chain_digest",)
