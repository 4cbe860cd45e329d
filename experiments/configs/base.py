"""All knobs of the sample-complexity binary with their defaults; the other configs change a few."""

import dataclasses

from ml_collections import config_dict

from qstr_jax import sweeps

# Types of the settings whose default is "from the preset" or "as published".
OPTIONAL = {
    'encoding_dim': int,
    'num_heads': int,
    'rnn_cell': str,
    'rnn_width': int,
    'rnn_radius': float,
    'rnn_lipschitz': float,
    'initializer': str,
    'weight_decay': tuple,
    'test_samples': int,
    'test_task': str,
    'lanes_per_batch': int,
}


def get_config():
    """Every field of `sweeps.Settings`, plus what the binary draws."""
    config = config_dict.ConfigDict()
    for field in dataclasses.fields(sweeps.Settings):
        if field.name in OPTIONAL:
            config[field.name] = config_dict.placeholder(OPTIONAL[field.name])
        else:
            config[field.name] = field.default
    config.x = 'seq_len'  # what the figure and the table run over; 'sparsity' for q
    config.title = ''  # above the figure
    config.notes = ()  # small print under the figure
    # Published values to draw beside ours, as (model, length, samples), and the columns that rows must have for it.
    config.reference = ()
    config.reference_for = config_dict.ConfigDict()
    # Settings that are no axis of one sweep → their values; a folder of the results each (heads, sensitivity).
    config.axes = config_dict.ConfigDict()
    # Heat map: columns of the rows on its axes, and the published value of each, whose cell gets a frame.
    config.heatmap = config_dict.ConfigDict()
    config.published = config_dict.ConfigDict()
    # Modules imported first, which register a model, a link or a probe of your own.
    config.plugins = ()
    return config
