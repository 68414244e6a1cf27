"""Model clients: each turns a provider's answer into raw chunks (`processors.engine.ports.LanguageModel`).

`catalog.build_model` chooses the client for a model's name. Nothing here knows Django or a queue.
"""
