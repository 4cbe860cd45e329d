"""Pictures for a page: few colours and not larger than they are shown."""

import io
import warnings

import matplotlib
from matplotlib.figure import Figure
from PIL import Image

from qstr_jax.plots import STYLE

_DPI = 110
_MOST_PIXELS = 960
_MOST_COLOURS = 32


def png_of(figure: Figure) -> bytes:
    """A figure as PNG bytes."""
    buffer = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format='png', dpi=_DPI)
    return small(buffer.getvalue())


def small(png: bytes) -> bytes:
    """A picture with a quarter of the bytes; bytes that are no picture stay as they are."""
    buffer = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('error', Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(png), formats=['PNG']).convert('RGB')
        if picture.width > _MOST_PIXELS:
            height = round(picture.height * _MOST_PIXELS / picture.width)
            picture = picture.resize((_MOST_PIXELS, height), Image.Resampling.LANCZOS)
        few = picture.quantize(_MOST_COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        few.save(buffer, 'PNG')
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning):
        return png
    return min(png, buffer.getvalue(), key=len)
