"""What the report says about one directory, before it is HTML or LaTeX."""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure


class Paragraph(NamedTuple):
    """A paragraph, and whether it tells of something that is missing or went wrong."""

    text: str
    is_problem: bool = False


class Picture(NamedTuple):
    """A picture as it lies in a directory."""

    caption: str
    png: bytes
    path: pathlib.Path


def counted(number: int, one: str, several: str = '') -> str:
    """'1 lane', '2 lanes', '2 directories'."""
    return f'{number:,} {one if number == 1 else several or f"{one}s"}'


@dataclasses.dataclass(kw_only=True)
class Section:
    """What the report says about one directory."""

    name: str  # as the reader knows it
    is_unfinished: bool = False  # whether planned lanes have no rows yet, which is no damage
    words: list[Paragraph] = dataclasses.field(default_factory=list)  # what is here, and what is missing
    tables: list[tuple[str, pd.DataFrame]] = dataclasses.field(default_factory=list)  # captions and tables
    # Captions and what draws the figures from the rows.
    figures: list[tuple[str, Callable[[], Figure]]] = dataclasses.field(default_factory=list)
    pictures: list[Picture] = dataclasses.field(default_factory=list)
    # Captions and plain texts, as they lie in the directory.
    texts: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    sweeps: list[dict[str, Any]] = dataclasses.field(default_factory=list)  # the sweeps of config.json
    runs: list[dict[str, Any]] = dataclasses.field(default_factory=list)  # provenance, oldest first
    rows: pd.DataFrame = dataclasses.field(default_factory=pd.DataFrame)
    curves: pd.DataFrame = dataclasses.field(default_factory=pd.DataFrame)

    def say(self, text: str, is_problem: bool = False) -> None:
        """Adds a paragraph."""
        self.words.append(Paragraph(text, is_problem))
