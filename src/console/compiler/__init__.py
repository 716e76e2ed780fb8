"""What compile_templates.py is made of: texts.py and parser.py read, html.py and compile.py check, write_c.py writes."""
