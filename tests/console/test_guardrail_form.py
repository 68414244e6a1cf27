"""The form that is drawn from a kind's options, including a kind that the console has never heard of."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from audit.models import Change
from processors.models import Processor
from tests.console.conftest import guardrail_data

ADD = "/admin/processors/processor/add/?kind=stranger"
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stranger_kind")]


def change_url(guardrail: Processor) -> str:
    return reverse("admin:processors_processor_change", args=[guardrail.pk])


def test_it_offers_kinds_as_cards_before_it_shows_a_form(alice, signed_in) -> None:
    page = signed_in(alice).get("/admin/processors/processor/add/").content.decode()
    assert "A stranger&#x27;s guardrail" in page
    assert "?kind=stranger" in page
    assert 'name="option-words"' not in page


def test_it_draws_a_field_for_every_setting_and_no_json(alice, signed_in) -> None:
    page = signed_in(alice).get(ADD).content.decode()
    for name in (
        "words",
        "strategy",
        "types",
        "threshold",
        "limit",
        "whole",
        "pattern",
        "rules",
        "scores",
        "secret",
    ):
        assert f"option-{name}" in page, name
    assert 'name="options"' not in page
    assert "From 0 to 1." in page
    assert "Never let these through." in page


def test_a_guardrail_is_saved_with_typed_settings(alice, signed_in) -> None:
    data = guardrail_data(**{"option-rules-row": ["0", "4"], "option-rules-0-name": "first", "option-rules-0-pattern": " a+",
                             "option-rules-4-name": "second", "option-rules-4-pattern": "b", "option-scores-row": ["0"],
                             "option-scores-0-key": "rude", "option-scores-0-value": "0.5"})  # fmt: skip
    response = signed_in(alice).post(ADD, data)
    assert response.status_code == 302, response.content.decode()
    options = Processor.objects.get(slug="no-swearing").options
    assert options["words"] == ["darn", "heck"]
    assert options["threshold"] == 0.8
    assert options["whole"] is True
    assert options["limit"] is None
    assert options["types"] == ["email"]
    assert options["rules"] == [{"name": "first", "pattern": " a+"}, {"name": "second", "pattern": "b"}]
    assert options["scores"] == {"rude": 0.5}


def test_saving_writes_who_changed_what(alice, signed_in) -> None:
    signed_in(alice).post(ADD, guardrail_data())
    change = Change.objects.get(object_type="processor")
    assert change.actor_label == "alice"
    assert change.object_label == "No swearing"


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"option-threshold": "1.5"}, "option-threshold", "less than or equal to 1"),
        ({"option-threshold": "much"}, "option-threshold", "Enter a number"),
        ({"option-words": "\n"}, "option-words", "required"),
        ({"option-strategy": "explode"}, "option-strategy", "not one of the available choices"),
        ({"option-limit": "3", "option-strategy": "block"}, "option-limit", "empty it or choose redact"),
        (
            {"option-rules-row": ["0"], "option-rules-0-name": "x", "option-rules-0-pattern": ""},
            "option-rules",
            "marked below",
        ),
    ],
)
def test_a_wrong_setting_is_told_at_its_field(alice, signed_in, changes, field, words) -> None:
    response = signed_in(alice).post(ADD, guardrail_data(**changes))
    assert response.status_code == 200
    errors = response.context["adminform"].form.errors
    assert words in str(errors[field])
    assert not Processor.objects.exists()


def test_a_row_with_a_mistake_keeps_what_was_typed(alice, signed_in) -> None:
    changes = {"option-rules-row": ["0"], "option-rules-0-name": "kept", "option-rules-0-pattern": ""}
    page = signed_in(alice).post(ADD, guardrail_data(**changes)).content.decode()
    assert 'value="kept"' in page
    assert "This field is required." in page


def test_a_secret_goes_in_and_never_comes_out(alice, signed_in, guardrail) -> None:
    client: Client = signed_in(alice)
    client.post(
        change_url(guardrail),
        guardrail_data(**{"option-secret": "hush-hush", "expected_revision": guardrail.revision}),
    )
    guardrail.refresh_from_db()
    kept = guardrail.options["secret"]
    assert kept.startswith("gh-enc:"), "secrets are stored encrypted"
    page = client.get(change_url(guardrail)).content.decode()
    assert "hush-hush" not in page
    assert "A secret is stored" in page
    client.post(
        change_url(guardrail),
        guardrail_data(**{"option-secret": "", "expected_revision": guardrail.revision}),
    )
    guardrail.refresh_from_db()
    assert guardrail.options["secret"] == kept, "an empty field keeps the secret"


def test_a_kind_that_changes_texts_cannot_fail_open(alice, signed_in, redacting_kind) -> None:
    url = "/admin/processors/processor/add/?kind=rewriter"
    assert 'value="allow"' not in signed_in(alice).get(url).content.decode()
    response = signed_in(alice).post(url, guardrail_data(on_error="allow"))
    assert "on_error" in response.context["adminform"].form.errors


def test_a_second_editor_with_an_old_page_is_told(alice, signed_in, guardrail) -> None:
    client: Client = signed_in(alice)
    seen = guardrail.revision
    client.post(change_url(guardrail), guardrail_data(name="First", expected_revision=seen))
    response = client.post(change_url(guardrail), guardrail_data(name="Second", expected_revision=seen))
    assert "Somebody else saved this guardrail" in response.content.decode()
    guardrail.refresh_from_db()
    assert guardrail.name == "First"


def test_a_kind_whose_package_is_gone_shows_as_broken_and_keeps_its_settings(alice, signed_in) -> None:
    broken = Processor.objects.create(slug="old", name="Old", kind="gone", options={"level": 3})
    client: Client = signed_in(alice)
    page = client.get(change_url(broken)).content.decode()
    assert "This guardrail is broken" in page
    assert "level" in page
    client.post(
        change_url(broken), {**guardrail_data(), "name": "Old one", "expected_revision": broken.revision}
    )
    broken.refresh_from_db()
    assert (broken.name, broken.options) == ("Old one", {"level": 3})


def test_what_is_in_use_is_not_deleted_and_says_by_whom(alice, signed_in, guardrail, agent) -> None:
    agent.chain.create(stage="input", processor=guardrail)
    response = signed_in(alice).post(
        reverse("admin:processors_processor_delete", args=[guardrail.pk]), {"post": "yes"}, follow=True
    )
    assert "these agents use it: Helper" in response.content.decode()
    assert Processor.objects.filter(pk=guardrail.pk).exists()


def test_only_the_trusted_change_a_mandatory_guardrail(signed_in, guardrail) -> None:
    from tests.console.conftest import person

    editor = person("gwen", "processors.view_processor", "processors.change_processor")
    Processor.objects.filter(pk=guardrail.pk).update(mandatory="both")
    response = signed_in(editor).post(
        change_url(guardrail), guardrail_data(name="Weaker", expected_revision=guardrail.revision)
    )
    assert response.status_code == 403
    trusted = person(
        "tess", "processors.view_processor", "processors.change_processor", "processors.manage_mandatory"
    )
    response = signed_in(trusted).post(
        change_url(guardrail),
        guardrail_data(name="Stronger", mandatory="both", expected_revision=guardrail.revision),
    )
    assert response.status_code == 302


def test_an_editor_without_that_right_cannot_make_one_mandatory(signed_in, guardrail) -> None:
    from tests.console.conftest import person

    editor = person("gwen", "processors.view_processor", "processors.change_processor")
    signed_in(editor).post(
        change_url(guardrail), guardrail_data(mandatory="both", expected_revision=guardrail.revision)
    )
    guardrail.refresh_from_db()
    assert guardrail.mandatory == ""
