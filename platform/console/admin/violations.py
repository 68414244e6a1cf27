"""Violations: what guardrails found, to be read and reviewed, never changed."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import ChoicesDropdownFilter, FieldTextFilter, RangeDateFilter
from unfold.decorators import display
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminTextareaWidget

from agents.models import Run
from audit.models import Review, Violation
from audit.selectors import violations_csv
from console.admin.pages import ReadOnlyAdmin
from console.audit_words import action_words, hook_words, place_words
from console.reviews import review_save
from console.site import site
from processors.models import Processor

OUTCOME_COLOURS = {"violation": "warning", "error": "danger", "not_scanned": "danger"}
REVIEW = "audit.add_review"


class ReviewForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Review
        fields = ("verdict", "note")
        widgets = {"verdict": UnfoldAdminRadioSelectWidget(), "note": UnfoldAdminTextareaWidget({"rows": 3})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["verdict"].choices = Review.Verdict.choices  # type: ignore[attr-defined]


@admin.register(Violation, site=site)
class ViolationAdmin(ReadOnlyAdmin):
    list_display = (
        "at",
        "outcome_label",
        "guardrail",
        "message_short",
        "done",
        "agent_slug",
        "user_label",
        "channel",
    )
    list_filter = (
        ("outcome", ChoicesDropdownFilter), ("processor_id", FieldTextFilter), ("agent_slug", FieldTextFilter),
        ("user_label", FieldTextFilter), ("channel", FieldTextFilter), ("at", RangeDateFilter),
    )  # fmt: skip
    paginator = InfinitePaginator
    search_fields = ("run_id",)
    search_help_text = _("The id of a run, of a conversation or of a violation")
    change_list_template = "admin/console/violation_list.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Violation]:
        return super().get_queryset(request).defer("detail", "matches", "chain_digest")

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Violation], search_term: str) -> tuple[QuerySet[Violation], bool]:  # fmt: skip
        if not search_term:
            return queryset, False
        try:
            wanted = UUID(search_term.strip())
        except ValueError:
            return queryset.filter(digest=search_term.strip()), False
        return queryset.filter(run_id=wanted) | queryset.filter(thread_id=wanted) | queryset.filter(
            pk=wanted
        ), False

    @display(description=_("outcome"), ordering="outcome", label=OUTCOME_COLOURS)
    def outcome_label(self, obj: Violation) -> tuple[str, str]:
        return obj.outcome, obj.get_outcome_display()

    @display(description=_("guardrail"), ordering="processor_id")
    def guardrail(self, obj: Violation) -> str:
        return obj.processor_name or obj.processor_id

    @display(description=_("what was done"), ordering="action")
    def done(self, obj: Violation) -> str:
        return action_words(obj.action)

    @display(description=_("message"))
    def message_short(self, obj: Violation) -> str:
        return obj.message if len(obj.message) <= 80 else obj.message[:79] + "…"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        violation = self.object_for_view(request, object_id)
        review = Review.objects.select_related("reviewer").filter(violation_id=violation.pk).first()
        may_review = request.user.has_perm(REVIEW)
        form = ReviewForm(request.POST or None, instance=review)
        if request.method == "POST":
            if not may_review:
                return HttpResponse(
                    _("You may not review violations; ask for the role “auditor”."), status=403
                )
            if form.is_valid():
                review_save(
                    actor=request.user,
                    violation=violation,
                    verdict=form.cleaned_data["verdict"],
                    note=form.cleaned_data["note"],
                )
                messages.success(request, _("Your review is kept beside the violation."))
                return HttpResponseRedirect(reverse("admin:audit_violation_change", args=[violation.pk]))
        context = self.page_context(
            request, violation, title=_("Violation %(row)s") % {"row": violation.sequence}, violation=violation,
            moment=hook_words(violation.hook), place=place_words(violation.where), done=action_words(violation.action),
            colour=OUTCOME_COLOURS.get(violation.outcome, "info"), review=review, review_form=form if may_review else None,
            run=Run.objects.filter(pk=violation.run_id).only("pk", "thread_id").first(),
            guardrail=Processor.objects.filter(slug=violation.processor_id).only("pk", "name").first(),
        )  # fmt: skip
        return TemplateResponse(request, "admin/console/violation.html", context)

    def get_urls(self) -> list[URLPattern]:
        return [
            path("csv/", self.admin_site.admin_view(self.csv), name="audit_violation_csv"),
            *super().get_urls(),
        ]

    def csv(self, request: HttpRequest) -> HttpResponse:
        """The violations that the list's filters choose, as CSV."""
        if not self.has_view_permission(request):
            return HttpResponse(_("You may not see violations."), status=403)
        chosen = self.get_changelist_instance(request).get_queryset(request)
        return HttpResponse(violations_csv(chosen), content_type="text/csv; charset=utf-8",
                            headers={"Content-Disposition": 'attachment; filename="violations.csv"'})  # fmt: skip
