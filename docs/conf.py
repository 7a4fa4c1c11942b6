"""The documentation as a site: `make docs`. Pages are those of this folder; the API comes from the docstrings."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from textwrap import indent

from sphinx.application import Sphinx

import latecomer

project = "Latecomer"
author = "the Latecomer developers"
version = release = latecomer.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}

myst_heading_anchors = 3  # links to headings are checked

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"Latecomer {version}"
html_theme_options = {"top_of_page_buttons": []}
html_show_copyright = False
html_copy_source = False

_HERE = Path(__file__).parent

# What a code host shows one folder up is a page of the site; pages that are there say which file they are.
_LINKS = {"](../CONTRIBUTING.md": "](contributing.md", "](../README.md": "](index.md"}
_LINKS_OF_TOP = {"](docs/": "](", "](CHANGELOG.md": "](changelog.md", "](CONTRIBUTING.md": "](contributing.md"}
_TOP = re.compile(r"```\{top\} (\S+)\n```")
_NAMES = re.compile(r"```\{names\}\n(.*?)```", re.DOTALL)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _prepare)


def _prepare(_app: Sphinx, _page: str, text: list[str]) -> None:
    text[0] = _TOP.sub(lambda found: _relinked((_HERE.parent / found[1]).read_text(), _LINKS_OF_TOP), text[0])
    text[0] = _relinked(text[0], _LINKS)
    text[0] = _NAMES.sub(lambda found: _documented(found[1].split()), text[0])


def _relinked(text: str, links: dict[str, str]) -> str:
    for outside, inside in links.items():
        text = text.replace(outside, inside)
    return text


def _documented(names: list[str]) -> str:
    """Directives for names of the package."""
    directives = "\n\n".join(map(_directive, names))
    return f"```{{eval-rst}}\n.. currentmodule:: latecomer\n\n{directives}\n```"


def _directive(name: str) -> str:
    found = getattr(latecomer, name)
    if inspect.isclass(found) and found.__name__ == name:
        return f".. autoclass:: {name}\n   :members:\n   :show-inheritance:"
    if not inspect.isclass(found):
        return f".. autofunction:: {name}"
    # A class that is called as a function is, such as lc.count: what users see is its signature.
    signature = inspect.signature(found, eval_str=False).replace(return_annotation=inspect.Signature.empty)
    return f".. py:function:: {name}{signature}\n\n{indent(inspect.getdoc(found) or '', '   ')}"
