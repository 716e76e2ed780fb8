/* `store check` of archive timestamps, evidence chains and queued evidence. */
#include "store/check/checking.h"

#define SIZES " WHEN 'sha-256' THEN 32 WHEN 'sha-384' THEN 48 WHEN 'sha-512' THEN 64 ELSE 1 END"
/* Bytes of a hash in an archive timestamp `a` or a block `b`. */
#define SIZE_A "CASE a.algorithm" SIZES
#define SIZE_B "CASE b.algorithm" SIZES
/* Condition: there is a block with the position of row `p`. */
#define HAS_PLACE                                                                                  \
	"EXISTS (SELECT 1 FROM archive_timestamp_blocks b WHERE b.stamp = p.stamp AND p.place >= 0"    \
	" AND b.block = p.place / 1024 AND p.place % 1024 < length(b.leaves) / " SIZE_B ")"
/* A chain `p` with the block that should contain it, if the block exists. */
#define CHAIN_WITH_BLOCK                                                                           \
	CHAINS_OF "evidence_chains p LEFT JOIN (SELECT b.stamp, b.block, length(b.leaves) / " SIZE_B   \
			  " AS places FROM archive_timestamp_blocks b) held"                                   \
			  " ON held.stamp = p.stamp AND held.block = p.place / 1024 WHERE "
#define HAS_NO_PLACE "p.place < 0 OR held.places IS NULL OR p.place % 1024 >= held.places"
/* Condition: the size of the hashes of chain `p` is not that of its archive timestamp. */
#define NOT_BY(algorithm, size)                                                                    \
	" OR (length(p.hashes) % " size " <> 0 AND p.stamp IN (SELECT b.stamp"                         \
	" FROM archive_timestamp_blocks b WHERE b.block = 0 AND b.algorithm = '" algorithm "'))"
#define IS_ISSUED                                                                                  \
	"EXISTS (SELECT 1 FROM certifications c WHERE c.account = p.account"                           \
	" AND c.certification = p.certification AND c.status = 'completed' AND c.chain % 2 = 0)"
#define CHAINS_OF                                                                                  \
	"SELECT 'chain ' || CAST(p.chain AS TEXT) || ' of record ' || CAST(p.record AS TEXT)"          \
	" || ' of certification ' || CAST(p.certification AS TEXT) FROM "
#define CHAIN CHAINS_OF "evidence_chains p WHERE "
#define TOKEN                                                                                      \
	"SELECT 'token ' || p.source || ' ' || CAST(p.number AS TEXT) FROM tokens_at_rest p WHERE "
#define STAMP                                                                                      \
	"SELECT 'archive timestamp ' || CAST(a.stamp AS TEXT) FROM archive_timestamps a WHERE "
#define BLOCK                                                                                      \
	"SELECT 'block ' || CAST(b.block AS TEXT) || ' of archive timestamp '"                         \
	" || CAST(b.stamp AS TEXT)"                                                                    \
	" FROM archive_timestamp_blocks b WHERE "

/* Each query returns the names of the objects with the problem. */
static const struct rule {
	const char *words, *literal_sql;
} rules[] = {
	{"the previous archive timestamp is missing",
     STAMP "a.stamp <> 1 AND NOT EXISTS (SELECT 1 FROM archive_timestamps o"
           " WHERE o.stamp = a.stamp - 1)"},
	{"its token is not registered for renewal",
     STAMP "NOT EXISTS (SELECT 1 FROM tokens_at_rest t"
           " WHERE t.source = 'stamp' AND t.number = a.stamp)"},
	{"its blocks do not match the block roots that it covers",
     STAMP "a.algorithm NOT IN ('sha-256', 'sha-384', 'sha-512') OR length(a.blocks) = 0"
           " OR length(a.blocks) <> " SIZE_A " * (SELECT COUNT(*) FROM archive_timestamp_blocks b"
           " WHERE b.stamp = a.stamp) OR EXISTS (SELECT 1 FROM archive_timestamp_blocks b"
           " WHERE b.stamp = a.stamp AND (b.algorithm <> a.algorithm OR b.block < 0"
           " OR b.block >= length(a.blocks) / " SIZE_A "))"},
	{"its leaves are not a list of hashes",
     BLOCK "length(b.leaves) = 0 OR length(b.leaves) % " SIZE_B
           " <> 0 OR length(b.leaves) / " SIZE_B " > 1024"},
	{"it is not a block of the next archive timestamp",
     BLOCK "b.stamp > (SELECT COALESCE(MAX(stamp), 0) FROM archive_timestamps)"
           " AND (b.stamp <> (SELECT COALESCE(MAX(stamp), 0) + 1 FROM archive_timestamps)"
           " OR (b.block <> 0 AND NOT EXISTS (SELECT 1 FROM archive_timestamp_blocks o"
           " WHERE o.stamp = b.stamp AND o.block = b.block - 1 AND o.algorithm = b.algorithm)))"},
	{"the token does not exist",
     TOKEN "NOT CASE p.source WHEN 'stamp' THEN EXISTS (SELECT 1 FROM archive_timestamps a"
           " WHERE a.stamp = p.number) WHEN 'round' THEN EXISTS (SELECT 1 FROM seal_rounds r"
           " WHERE r.round = p.number) WHEN 'second' THEN EXISTS (SELECT 1 FROM round_tokens r"
           " WHERE r.round = p.number) ELSE 1 = 0 END"},
	{"the archive timestamp that covers it does not contain it",
     TOKEN "(p.stamp IS NULL) <> (p.place IS NULL) OR (p.stamp IS NOT NULL AND NOT " HAS_PLACE
           ") OR (p.source = 'stamp' AND p.stamp <= p.number)"},
	{"its timestamp is not registered for renewal",
     "SELECT 'round ' || CAST(r.round AS TEXT) FROM seal_rounds r WHERE r.round <"
     " (SELECT MAX(number) FROM tokens_at_rest WHERE source = 'round')"
     " AND NOT EXISTS (SELECT 1 FROM tokens_at_rest t WHERE t.source = 'round'"
     " AND t.number = r.round)"},
	{"its archive timestamp does not contain it", CHAIN_WITH_BLOCK HAS_NO_PLACE},
	{"its documents were not issued", CHAIN "NOT " IS_ISSUED},
	{"it does not continue the previous chain",
     CHAIN "(p.chain = 1) <> (p.after_stamp IS NULL) OR (p.chain <> 1 AND NOT EXISTS (SELECT 1"
           " FROM evidence_chains o WHERE o.account = p.account"
           " AND o.certification = p.certification AND o.record = p.record"
           " AND o.chain = p.chain - 1 AND o.stamp <= p.after_stamp))"
           " OR (p.after_stamp IS NOT NULL AND (p.after_stamp >= p.stamp OR p.after_stamp NOT IN"
           " (SELECT a.stamp FROM archive_timestamps a)))"},
	{"its hashes have the wrong size", CHAIN "length(p.hashes) = 0" NOT_BY("sha-256", "32")
                                           NOT_BY("sha-384", "48") NOT_BY("sha-512", "64")},
	{"it is queued for evidence, but was not issued or has no valid reason",
     "SELECT 'certification ' || CAST(p.certification AS TEXT) FROM evidence_queue p"
     " WHERE p.reason NOT IN ('first', 'digest', 'lost') OR NOT " IS_ISSUED},
	{"it has no evidence and is not queued for it",
     "SELECT 'certification ' || c.certification_id FROM certifications c"
     " WHERE c.status = 'completed' AND c.chain % 2 = 0"
     " AND NOT EXISTS (SELECT 1 FROM evidence_chains e"
     " WHERE e.account = c.account AND e.certification = c.certification)"
     " AND NOT EXISTS (SELECT 1 FROM evidence_queue q"
     " WHERE q.account = c.account AND q.certification = c.certification)"},
};

static void check_rule(struct check *check, const struct rule *rule)
{
	struct db_query *query = db_query_long(check->reader, rule->literal_sql);
	while (db_step(query)) {
		struct slice name = db_text(query, 0);
		check_problem(check, "%.*s: %s", (int)name.size, name.data, rule->words);
	}
	db_release(query);
}

/* In one read transaction. *ret_last is the last archive timestamp in it. */
static int check_rules(struct check *check, int64_t *ret_last, struct error *error)
{
	struct db_connection *reader = check_take_reader(check);
	int result = db_begin(reader, error);
	for (size_t i = 0; i < sizeof rules / sizeof *rules && !result; i++) {
		check_rule(check, &rules[i]);
		result = db_failure(reader);
	}
	if (!result) {
		struct db_query *query =
			db_query(reader, "SELECT COALESCE(MAX(stamp), 0) FROM archive_timestamps");
		*ret_last = db_step(query) ? db_integer(query, 0) : 0;
		result = db_end(query, error);
	}
	check_give_reader(check);
	return result;
}

int check_evidence(struct check *check, struct error *error)
{
	int64_t last = 0;
	int result = check_rules(check, &last, error);
	/* A problem found by a listener does not end the check. */
	for (int64_t stamp = 1; stamp <= last && !result && check->listener->archive_timestamp;
	     stamp++) {
		result = check->listener->archive_timestamp(check->listener->context, stamp);
		result = result == ERR_CORRUPT ? OK : result;
	}
	return result;
}
