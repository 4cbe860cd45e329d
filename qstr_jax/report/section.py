"""What the report says about one directory, before it is HTML or LaTeX."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure


class Paragraph(NamedTuple):
    """A paragraph, and whether it tells of something that is missing or went wrong."""

    text: str
    is_problem: bool = False


@dataclasses.dataclass(kw_only=True)
class Section:
    """What the report says about one directory."""

    name: str  # as the reader knows it
    words: list[Paragraph] = dataclasses.field(default_factory=list)  # what is here, and what is missing
    tables: list[tuple[str, pd.DataFrame]] = dataclasses.field(default_factory=list)  # captions and tables
    # Captions and what draws the figures from the rows.
    figures: list[tuple[str, Callable[[], Figure]]] = dataclasses.field(default_factory=list)
    # Captions and PNG bytes, as they lie in the directory.
    pictures: list[tuple[str, bytes]] = dataclasses.field(default_factory=list)
    # Captions and plain texts, as they lie in the directory.
    texts: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    sweeps: list[dict[str, Any]] = dataclasses.field(default_factory=list)  # the sweeps of config.json
    runs: list[dict[str, Any]] = dataclasses.field(default_factory=list)  # provenance, oldest first
    rows: pd.DataFrame = dataclasses.field(default_factory=pd.DataFrame)
    curves: pd.DataFrame = dataclasses.field(default_factory=pd.DataFrame)

    def say(self, text: str, is_problem: bool = False) -> None:
        """Adds a paragraph."""
        self.words.append(Paragraph(text, is_problem))
