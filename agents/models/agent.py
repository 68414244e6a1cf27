"""The draft of an agent and its immutable published versions."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models.resource import ProviderCredential, Tool
from processors.models import Processor


class Agent(models.Model):
    """What an editor sees: the draft. Users get `published`, and nothing goes live by saving."""

    class Access(models.TextChoices):
        EVERYONE = "everyone", _("everyone who can sign in")
        GROUPS = "groups", _("only these groups")

    class WhenBusy(models.TextChoices):
        QUEUE = "queue", _("answer one after the other")
        REJECT = "reject", _("refuse the second message")

    slug = models.SlugField(_("short name"), max_length=100, unique=True, help_text=_("Used in addresses and in the audit; it cannot be changed later."))  # fmt: skip
    name = models.CharField(_("name"), max_length=200)
    description = models.CharField(_("what people may ask it"), max_length=300, blank=True)
    instructions = models.TextField(_("instructions"), blank=True)
    model = models.CharField(
        _("model"), max_length=200, help_text=_("provider/name, for example local/smollm2.")
    )
    credential = models.ForeignKey(ProviderCredential, on_delete=models.PROTECT, null=True, blank=True, verbose_name=_("credential"))  # fmt: skip
    fallbacks = models.JSONField(_("fallback models"), default=list, blank=True)
    temperature = models.FloatField(_("temperature"), null=True, blank=True, validators=[MinValueValidator(0), MaxValueValidator(2)])  # fmt: skip
    max_output_tokens = models.PositiveIntegerField(_("longest answer, in tokens"), null=True, blank=True)
    max_steps = models.PositiveSmallIntegerField(_("most steps per answer"), default=5, validators=[MinValueValidator(1), MaxValueValidator(50)])  # fmt: skip
    max_processor_retries = models.PositiveSmallIntegerField(_("second chances per answer"), null=True, blank=True, help_text=_("How often a guardrail may ask the model to try again. Empty: never."))  # fmt: skip
    max_total_tokens = models.PositiveIntegerField(_("token limit per answer"), null=True, blank=True)
    max_seconds = models.PositiveIntegerField(_("time limit per answer, in seconds"), default=300)
    history_messages = models.PositiveSmallIntegerField(_("earlier messages it remembers"), default=20)
    when_busy = models.CharField(_("a second message while it answers"), max_length=8, choices=WhenBusy.choices, default=WhenBusy.QUEUE)  # fmt: skip
    access = models.CharField(
        _("who may chat"), max_length=16, choices=Access.choices, default=Access.EVERYONE
    )
    allowed_groups = models.ManyToManyField(Group, blank=True, verbose_name=_("groups"))
    is_active = models.BooleanField(_("switched on"), default=True)
    published = models.ForeignKey("agents.AgentVersion", on_delete=models.PROTECT, null=True, blank=True, editable=False, related_name="+", verbose_name=_("published version"))  # fmt: skip
    revision = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(_("made"), auto_now_add=True)
    updated_at = models.DateTimeField(_("last changed"), auto_now=True)
    tools = models.ManyToManyField(Tool, through="agents.AgentTool", blank=True, verbose_name=_("tools"))

    class Meta:
        verbose_name = _("agent")
        verbose_name_plural = _("agents")
        ordering = ["name"]
        permissions = [
            ("publish_agent", _("Can publish agents")),
            ("approve_tool", _("Can approve tool calls")),
        ]

    def __str__(self) -> str:
        return self.name


class ChainEntry(models.Model):
    """A guardrail's place in one of an agent's three chains."""

    class Stage(models.TextChoices):
        INPUT = "input", _("input: what people write")
        OUTPUT = "output", _("output: what the agent answers")
        ERROR = "error", _("errors of the model's provider")

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="chain")
    stage = models.CharField(_("chain"), max_length=8, choices=Stage.choices)
    processor = models.ForeignKey(Processor, on_delete=models.PROTECT, related_name="entries", verbose_name=_("guardrail"))  # fmt: skip
    position = models.PositiveIntegerField(_("position"), default=0, db_index=True)
    enabled = models.BooleanField(_("on"), default=True)

    class Meta:
        verbose_name = _("guardrail in a chain")
        verbose_name_plural = _("guardrails in a chain")
        ordering = ["stage", "position", "id"]

    def __str__(self) -> str:
        return f"{self.processor} ({self.get_stage_display()})"


class AgentTool(models.Model):
    """A tool that an agent may use."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="agent_tools")
    tool = models.ForeignKey(
        Tool, on_delete=models.PROTECT, related_name="agent_tools", verbose_name=_("tool")
    )
    position = models.PositiveIntegerField(_("position"), default=0, db_index=True)

    class Meta:
        verbose_name = _("tool of an agent")
        verbose_name_plural = _("tools of an agent")
        ordering = ["position", "id"]
        constraints = [models.UniqueConstraint(fields=["agent", "tool"], name="agents_tool_once_per_agent")]

    def __str__(self) -> str:
        return str(self.tool)


class AgentVersion(models.Model):
    """An immutable snapshot of everything a run needs. A database trigger refuses changes."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(_("number"))
    snapshot = models.JSONField(_("snapshot"))
    note = models.TextField(_("note"), blank=True)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, verbose_name=_("author")
    )
    created_at = models.DateTimeField(_("published"), auto_now_add=True)

    class Meta:
        verbose_name = _("version")
        verbose_name_plural = _("versions")
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["agent", "number"], name="agents_version_number_once")]

    def __str__(self) -> str:
        return f"{self.agent} v{self.number}"
