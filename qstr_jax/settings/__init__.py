"""Settings of tasks, models and learners: what they are, how they are checked, and the table of all that has some."""

from qstr_jax.settings.schema import Schema, Setting, derived, later, schema_of, static, traced, validate_fields

__all__ = ['Schema', 'Setting', 'derived', 'later', 'schema_of', 'static', 'traced', 'validate_fields']
