"""The evidence format, checked in this process: its page is docs/verify/evidence-format.md of the repository, and the
sections named here are that page's."""
