/* What an archive timestamp is to cover now: shared by the files of renewals alone. */
#ifndef SERVICE_RENEWAL_LEAF_H
#define SERVICE_RENEWAL_LEAF_H

#include "service/renewal.h"
#include "store/evidence/evidence.h"

#define RENEWAL_LEAVES_MEMORY_MAX ((size_t)64 << 20)

/* evidence.digest: what new chains of records hash with. */
enum digest_algorithm renewal_digest(const struct settings *settings);

struct renewal_leaves {
	struct evidence_leaf *leaves; /* room for EVIDENCE_LEAVES_MAX */
	size_t count;
	bool full;           /* there may be more */
	struct arena *arena; /* of what they point to */
};
/* Those by that algorithm, as many as fit into one block or are worth one transaction: after a
 * gigabyte of documents read what is made is to be staged, so that it is not lost. */
int renewal_make_leaves(const struct renewal *renewal, enum digest_algorithm algorithm,
                        struct renewal_leaves *made, struct error *error) MUST_CHECK;

#endif
