"""Builds the site: ``sphinx-build -W docs build/site``."""

from importlib.metadata import version as installed

project = "dedup-middleware"
copyright = "the authors of dedup-middleware"  # noqa: A001 - Sphinx reads this name
version = release = installed("dedup-middleware")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"dedup-middleware {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
# A prompt is not copied, and neither is the output below it.
copybutton_prompt_text = "$ "
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0f6b5c", "color-brand-content": "#0b5fa5"},
    "dark_css_variables": {"color-brand-primary": "#5fd0b9", "color-brand-content": "#7ab8f5"},
}
