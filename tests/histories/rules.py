"""All rules."""

import rules_access  # noqa: F401
import rules_answers  # noqa: F401
import rules_backups  # noqa: F401
import rules_certifications  # noqa: F401
import rules_chain  # noqa: F401
import rules_lists  # noqa: F401
import rules_mails  # noqa: F401
import rules_money  # noqa: F401
import rules_nodes  # noqa: F401
import rules_notices  # noqa: F401
