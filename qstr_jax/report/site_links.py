"""What is wrong with the links of a folder of HTML pages, and what they would load from elsewhere."""

import html.parser
import os
import pathlib
import re
import urllib.parse
from collections.abc import Iterator

# The attributes of elements whose address a browser loads by itself.
_LOADED = {**dict.fromkeys(('script', 'img', 'iframe', 'source', 'video', 'audio'), 'src'), 'object': 'data'}
_LOADED_RELS = {'stylesheet', 'icon', 'preload', 'preconnect', 'dns-prefetch', 'modulepreload', 'manifest'}
_IN_STYLES = re.compile(r'(?:url\(|@import)\s*["\']?\s*((?:https?:)?//[^"\')\s]+)')


class _Page(html.parser.HTMLParser):
    """The anchors of a page, what it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = _IN_STYLES.findall(text)
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what an element names, links to or loads."""
        given = {name: value or '' for name, value in attrs}
        self.anchors |= {given[name] for name in ('id', 'name') if name in given}
        if tag == 'a' and 'href' in given:
            self.links.append(given['href'])
        elif tag == 'link' and _LOADED_RELS & set(given.get('rel', '').split()):
            self.loads.append(given.get('href', ''))
        elif tag in _LOADED and _LOADED[tag] in given:
            self.loads.append(given[_LOADED[tag]])


def problems(folder: str | os.PathLike) -> list[str]:
    """A line for each link without a target and each resource that is missing or lies elsewhere."""
    root = pathlib.Path(folder).resolve()
    # The page for addresses that are not there is written for a server, with addresses from its root.
    paths = [path for path in sorted(root.rglob('*.html')) if path != root / '404.html']
    pages = {path: _Page(path.read_text()) for path in paths}
    found = [line for path in pages for line in _of_page(root, path, pages)]
    for path in sorted(root.rglob('*.css')):
        found += [f'{path.relative_to(root)}: loads {address}' for address in _IN_STYLES.findall(path.read_text())]
    return found


def _of_page(root: pathlib.Path, path: pathlib.Path, pages: dict[pathlib.Path, _Page]) -> Iterator[str]:
    name = path.relative_to(root)
    for address in pages[path].loads:
        if _is_elsewhere(address) and not address.startswith('data:'):
            yield f'{name}: loads {address}'
        elif not _is_elsewhere(address) and not _target(root, path, address).exists():
            yield f'{name}: {address} is missing'
    for address in pages[path].links:
        if _is_elsewhere(address):
            continue
        target = _target(root, path, address)
        anchor = urllib.parse.unquote(urllib.parse.urlsplit(address).fragment)
        if not target.exists():
            yield f'{name}: {address} leads nowhere'
        elif anchor and target in pages and anchor not in pages[target].anchors:
            yield f'{name}: {address} names no place of its page'


def _is_elsewhere(address: str) -> bool:
    parts = urllib.parse.urlsplit(address)
    return bool(parts.scheme or parts.netloc)


def _target(root: pathlib.Path, page: pathlib.Path, address: str) -> pathlib.Path:
    """The file that an address of a page means; a folder means its index."""
    path = urllib.parse.unquote(urllib.parse.urlsplit(address).path)
    if not path:
        return page
    target = (root / path.lstrip('/') if path.startswith('/') else page.parent / path).resolve()
    return target / 'index.html' if target.is_dir() else target
