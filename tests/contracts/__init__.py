"""Contracts of whole kinds of files: Lua scripts and the OpenAPI document."""
