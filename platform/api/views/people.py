"""Who asks, and whom they may ask."""

from __future__ import annotations

from typing import cast

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from agents.selectors import agents_for
from api.serializers import AgentSerializer, MeSerializer


class Me(APIView):
    """The person whose key or session this is."""

    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        return Response(MeSerializer(cast(User, request.user)).data)


class Agents(APIView):
    """The agents you may chat with."""

    @extend_schema(responses=AgentSerializer(many=True))
    def get(self, request: Request) -> Response:
        return Response({"results": AgentSerializer(agents_for(request.user), many=True).data})
