"""Every setting of a sweep as a config, unset, for --config and for configs that set a few: see `qstr_jax.cli.base`."""

from qstr_jax.cli.base import check_drawn, get_config, import_plugins, shrink_tuned, to_sweep, unset

__all__ = ['check_drawn', 'get_config', 'import_plugins', 'shrink_tuned', 'to_sweep', 'unset']
