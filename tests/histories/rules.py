"""All rules."""

import rules_answers  # noqa: F401
import rules_certifications  # noqa: F401
import rules_chain  # noqa: F401
import rules_lists  # noqa: F401
