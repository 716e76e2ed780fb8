import rules_chain  # noqa: F401
