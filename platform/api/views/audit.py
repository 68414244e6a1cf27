"""The trail of violations, for auditors' own tools."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from api.pages import ViolationPages
from api.serializers import ViolationQuerySerializer, ViolationSerializer
from audit.models import Violation
from audit.selectors import violations_csv, violations_list


def filtered(request: Any) -> Any:
    """The violations that the query asks for. Raises ValidationError for an unknown or unfitting filter."""
    given = {
        name: value
        for name, value in request.query_params.items()
        if name not in ("cursor", "limit", "format")
    }
    asked = ViolationQuerySerializer(data=given)
    unknown = set(given) - set(asked.fields)
    if unknown:
        raise ValidationError(
            {sorted(unknown)[0]: [f"There is no such filter. Use one of: {', '.join(asked.fields)}."]}
        )
    asked.is_valid(raise_exception=True)
    return violations_list(request.user, **asked.validated_data)


class Violations(generics.ListAPIView[Violation]):
    """What guardrails did, newest first."""

    serializer_class = ViolationSerializer
    pagination_class = ViolationPages
    filter_backends = ()
    queryset = Violation.objects.none()

    def get_queryset(self) -> Any:
        return filtered(self.request)

    @extend_schema(parameters=[ViolationQuerySerializer])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        return super().get(request, *args, **kwargs)


class CsvRenderer(BaseRenderer):
    """Lets clients ask for CSV."""

    media_type = "text/csv"
    format = "csv"

    def render(self, data: Any, accepted_media_type: Any = None, renderer_context: Any = None) -> bytes:
        return JSONRenderer().render(data)


class ViolationsCsv(APIView):
    """The same as CSV, at most 100,000 rows; narrow it with the filters."""

    renderer_classes = (CsvRenderer, JSONRenderer)

    @extend_schema(parameters=[ViolationQuerySerializer], responses={(200, "text/csv"): OpenApiTypes.STR})
    def get(self, request: Request) -> HttpResponse:
        answer = HttpResponse(violations_csv(filtered(request)), content_type="text/csv; charset=utf-8")
        answer["Content-Disposition"] = 'attachment; filename="violations.csv"'
        return answer
