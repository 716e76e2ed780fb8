class Refused(Exception):
    """What is wrong with a page or a text; where, too."""
