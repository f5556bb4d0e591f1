"""What MkDocs is not told by its configuration: links to folders and to files outside docs/, and lists as GitHub reads them.

A folder is its README.md, or a list of what is in it. A file outside docs/ becomes a page below repository/, prose as prose
and everything else as code; with `extra.repository`, the address of a copy of the repository, code is linked to there.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(?=[#)])")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".sh": "sh", ".java": "java"}


def target_of(source: str, link: str) -> str | None:
    """The path in the repository that a link of the file `source` leads to, None where there is nothing, or it leads out."""
    if urlsplit(link).scheme or link.startswith("/"):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if (ROOT / path / "README.md").is_file():
        return f"{path}/README.md"
    return path if not path.startswith("..") and (ROOT / path).exists() else None


def place_of(path: str) -> str:
    """Where the site has that file or folder of the repository."""
    inside = path.removeprefix("docs/")
    place = inside if inside != path else f"repository/{path}"
    if (ROOT / path).is_dir():
        return f"{place}/index.md"
    return place if inside != path or path.endswith(".md") else f"{place}.md"


def page_of(path: str) -> str:
    """The Markdown of a file or folder that is no page of docs/."""
    here = ROOT / path
    if here.is_dir():
        names = sorted(each.name for each in here.iterdir() if not each.name.startswith((".", "__")))
        return f"# {path}\n\n" + "".join(f"* [{name}]({name})\n" for name in names)
    if path.endswith(".md"):
        return here.read_text()
    return f"# {path}\n\n``````{LANGUAGES.get(here.suffix, 'text')}\n{here.read_text()}\n``````\n"


def source_of(file: File) -> str:
    """Where the repository has what a page of the site is made of. A folder's list is in that folder."""
    if not file.src_uri.startswith("repository/"):
        return f"docs/{file.src_uri}"
    path = file.src_uri.removeprefix("repository/")
    return path if (ROOT / path).is_file() or path.endswith("/index.md") else path.removesuffix(".md")


def targets(source: str, markdown: str) -> Iterator[str]:
    """All that a page links to in this repository."""
    for link in LINK.findall(markdown):
        if (path := target_of(source, link)) is not None:
            yield path


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that nobody wrote: those that the navigation names, and all that a page links to."""
    named = re.findall(r"repository/([^'\"]+\.md)", str(config.nav))
    found = [path for path in named if (ROOT / path).is_file()]
    for file in files.documentation_pages():
        found += targets(source_of(file), file.content_string)
    while found:
        path = found.pop()
        if files.get_file_from_path(place_of(path)) is not None or is_elsewhere(path, config):
            continue
        text = page_of(path)
        files.append(File.generated(config, place_of(path), content=text, inclusion=InclusionLevel.NOT_IN_NAV))
        found += targets(posixpath.join(path, "index.md") if (ROOT / path).is_dir() else path, text)
    return files


def is_elsewhere(path: str, config: MkDocsConfig) -> bool:
    """Whether that file or folder is linked to at the address of the repository."""
    return bool(config.extra["repository"]) and not path.startswith("docs/") and not path.endswith(".md")


def as_github(markdown: str) -> str:
    """Markdown for Python-Markdown, with lists that GitHub sees and it does not: nested by less than four spaces, with a
    fence or a paragraph by less, or right below a paragraph.
    """
    lines: list[str] = []
    fence = ""                          # the indentation of the fence that is open, and three backticks
    for line in markdown.split("\n"):
        indented, item = re.match(r" {2,3}(?! )", line), re.match(r" *(?:[*-]|\d+\.) ", line)
        before = lines[-1] if lines else ""
        if fence:
            lines.append(f"  {line}" if fence.startswith(" ") and line else line)
            fence = "" if line.startswith(fence) else fence
            continue
        if opened := re.match(r" *```", line):
            fence = opened[0]
        if item and not indented and re.match(r"[^\s*\-\d>|#]", before):
            lines.append("")
        lines.append(f"  {line}" if indented and (item or fence or not before.strip()) else line)
    return "\n".join(lines)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads each link to the page that has what it names. One that leads nowhere stays, and MkDocs refuses it."""
    source = source_of(page.file)

    def led(link: re.Match[str]) -> str:
        path = target_of(source, link[1])
        if path is None:
            return link[1]
        if is_elsewhere(path, config):
            return f"{config.extra['repository'].rstrip('/')}/{path}"
        return posixpath.relpath(place_of(path), posixpath.dirname(page.file.src_uri) or ".")

    return as_github(LINK.sub(led, markdown))
