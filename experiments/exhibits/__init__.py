"""Exhibits: one file each, which has all of it. A new exhibit is a new file here, and its rows in experiments/results.

An exhibit's docstring says what is run: its first line is the exhibit's title. The file holds

    ORDER = 10                                   its place in the gallery, among the others' numbers
    IS_SUPPORTING = True                         a line of the gallery's table instead of a section; may be left out
    QUESTION = 'Which …?'                        what it asks
    FOLDERS = {'figure1a': ('one_draw',), …}     the parts of get_config that run into each results directory; without
                                                 it the directory has the file's name, and get_config takes no part
    TITLES = {'figure1a_task_per_lane': '…'}     the titles of directories that hold something else than the title says;
                                                 no two directories have one title
    FIGURES = {'figure1a/figure.png': '…'}       the pictures of its section, with what they show; the first stands in
                                                 the gallery, all on the exhibit's page
    get_config(part)                             an ml_collections config, which `--config=FILE:PART` takes too
    reduced(part)                                the same in seconds
    draw(workdir, config)                        figures and tables, by `save` and `write` of `qstr_jax.report.drawing`;
                                                 without it `draw` there
    check(config, sweep)                         raises ValueError for a sweep that `draw` cannot draw; may be left out
    text(rows)                                   Markdown: the answer. Its first paragraph stands in the gallery
    table(rows)                                  Markdown: a small table; may be left out
    LIMITS = '…', or limits(rows)                what it does not show, with numbers from the rows or without

A card of a theorem, card_NAME.py, has its ORDER, QUESTION and LIMITS too, but instead of the others

    Settings                                     a frozen dataclass, whose defaults are the full run
    REDUCED = {…}                                the settings that differ in the small version, which takes seconds
    sweeps(settings)                             the sweeps that it trains, by name; without it nothing is trained
    card(settings, rows)                         the `qstr_jax.analysis.card.Card` of the rows of these sweeps, by the
                                                 same names: claim, points, lines, checks; so its figure, verdict, text

It is kept with its settings as cards/NAME/card.json, beside its rows, which are evidence for nothing else.

`rows` is a `qstr_jax.report.numbers.Rows`: numbers in texts are expressions over it, never typed, and rest on three
lanes or more. These follow from the files: `python -m experiments.exhibit NAME`, `make NAME`, gallery and site, the
index of results, the programs that are compiled for accelerators, and the tests of the small versions.
"""
