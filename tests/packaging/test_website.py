"""`make docs`: the whole site, nothing of it from another host, and what must fail it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*?\bsrc=["']?([^"'\s>]+)"""
                    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|icon|preload|preconnect))[^>]*?\bhref=["']?([^"'\s>]+)""")
CALLED = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')]+)""")


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", autouse=True)
def site() -> Path:
    """The site, as `make docs` builds it."""
    made = run("make", "docs")
    assert made.returncode == 0, made.stdout + made.stderr
    return ROOT / "build" / "site"


def test_every_page_is_there_and_the_search_knows_it(site: Path) -> None:
    written = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    index = (site / "search" / "search_index.json").read_text()
    for page in written:
        place = re.sub(r"(^|/)README\.md$", r"\1index.md", page).removesuffix(".md") + ".html"
        assert (site / place).is_file(), page
        assert f'"location":"{place}"' in index or place == "index.html", page


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages, sheets = list(site.rglob("*.html")), list(site.rglob("*.css"))
    found = [(page.name, "".join(hit)) for page in pages for hit in LOADED.findall(page.read_text())]
    assert len(found) > 4 * len(pages)
    assert [(page, address) for page, address in found if re.match(r"(https?:)?//", address)] == []
    assert [hit for sheet in (*sheets, *pages) for hit in CALLED.findall(sheet.read_text())] == []


def test_links_to_files_outside_docs_have_pages(site: Path) -> None:
    assert 'href="repository/helm/switchover/templates/role.yaml.html"' in (site / "security.html").read_text()
    listing = (site / "repository/examples/argocd/index.html").read_text()
    assert 'href="root.yaml.html"' in listing


# --- a site of two pages, by the configuration of the whole one -----------------------------------------------------------

FAULTS = {
    "[gone](gone.md)": "'gone.md'",
    "[gone](second.md#gone)": "'second.md#gone'",
    "[gone](../helm/gone.yaml)": "'../helm/gone.yaml'",
    "[absolute](/second.md)": "'/second.md'",
    "![gone](gone.svg)": "'gone.svg'",
    "a page in no navigation": '  - second.md',
}
"""What a page says, or is, and how the failure names it."""
LISTS = """Above:
* one

  ```yaml
  a:
    b: 1
  ```

* two
  - inner
  - last

1. three
   * four

```
  - code
```"""
SHOWN = """</p><ul><li><p>one</p><pre>a:b:1</pre></li><li><p>two</p><ul><li>inner</li><li>last</li></ul></li></ul>
<ol><li>three<ul><li>four</li></ul></li></ol><pre>-code</pre>""".replace("\n", "")


def build(folder: Path, text: str, nav: str = "index.md, second.md",
          repository: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "docs").mkdir()
    (folder / "docs" / "index.md").write_text(f"# One\n\n{text}\n")
    (folder / "docs" / "second.md").write_text("# Two\n\n## Install\n")
    (folder / "mkdocs.yml").write_text(f"INHERIT: {ROOT}/website/mkdocs.yml\ndocs_dir: docs\nsite_dir: site\nnav: [{nav}]\n"
                                       f"hooks: [{ROOT}/website/hooks.py]\nextra_css: []\n")
    return run("build/docs/bin/mkdocs", "build", "--config-file", str(folder / "mkdocs.yml"), REPOSITORY=repository)


def test_what_leads_nowhere_fails_and_is_named(tmp_path: Path) -> None:
    made = build(tmp_path, "\n\n".join(FAULTS), nav="index.md")
    assert made.returncode == 1
    assert [text for text, told in FAULTS.items() if told not in made.stderr] == []


def test_lists_and_links_are_what_github_makes_of_them(tmp_path: Path) -> None:
    made = build(tmp_path, f"[code](../Dockerfile) and [prose](second.md#install)\n\n{LISTS}")
    assert made.returncode == 0, made.stderr
    page = (tmp_path / "site" / "index.html").read_text()
    assert 'href="repository/Dockerfile.html"' in page
    assert (tmp_path / "site" / "repository" / "Dockerfile.html").is_file()
    lists = page.partition("Above:")[2].partition("</article>")[0]
    blocks = re.sub(r"<(?!/?(?:ul|ol|li|pre|p)\b)[^>]*>|\s+(?![^<]*>)", "", lists)
    assert re.sub(r"<(\w+)[^>]*>", r"<\1>", blocks) == SHOWN


def test_code_is_linked_to_where_the_repository_can_be_read(tmp_path: Path) -> None:
    made = build(tmp_path, "[code](../Dockerfile)", repository="https://git.example.com/switchover/blob/main/")
    assert made.returncode == 0, made.stderr
    page = (tmp_path / "site" / "index.html").read_text()
    assert 'href="https://git.example.com/switchover/blob/main/Dockerfile"' in page
    assert not (tmp_path / "site" / "repository" / "Dockerfile.html").exists()
