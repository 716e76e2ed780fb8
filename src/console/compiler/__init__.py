"""Modules of compile_templates.py: texts.py and parser.py read, html.py and compile.py check, write_c.py writes."""
