#include "store/check/checking.h"

#define SIZES " WHEN 'sha-256' THEN 32 WHEN 'sha-384' THEN 48 WHEN 'sha-512' THEN 64 ELSE 1 END"
/* Bytes of a hash in an archive timestamp `a`, in a block `b`. */
#define SIZE_A "CASE a.algorithm" SIZES
#define SIZE_B "CASE b.algorithm" SIZES
/* That a block holds what a row `p` is to be found at. */
#define HAS_PLACE                                                                                  \
	"EXISTS (SELECT 1 FROM archive_timestamp_blocks b WHERE b.stamp = p.stamp AND p.place >= 0"    \
	" AND b.block = p.place / 1024 AND p.place % 1024 < length(b.leaves) / " SIZE_B ")"
/* A chain `p` with the block that is to hold it, if it is there. */
#define CHAIN_WITH_BLOCK                                                                           \
	CHAINS_OF "evidence_chains p LEFT JOIN (SELECT b.stamp, b.block, length(b.leaves) / " SIZE_B   \
			  " AS places FROM archive_timestamp_blocks b) held"                                   \
			  " ON held.stamp = p.stamp AND held.block = p.place / 1024 WHERE "
#define HAS_NO_PLACE "p.place < 0 OR held.places IS NULL OR p.place % 1024 >= held.places"
/* That the hashes of a chain `p` are not of the size that its archive timestamp's are. */
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

/* Each finds the names of what the words say. */
static const struct rule {
	const char *words, *literal_sql;
} rules[] = {
	{"the one before is missing",
     STAMP "a.stamp <> 1 AND NOT EXISTS (SELECT 1 FROM archive_timestamps o"
           " WHERE o.stamp = a.stamp - 1)"},
	{"its token is not at rest", STAMP "NOT EXISTS (SELECT 1 FROM tokens_at_rest t"
                                       " WHERE t.source = 'stamp' AND t.number = a.stamp)"},
	{"its blocks are not those that it is over",
     STAMP "a.algorithm NOT IN ('sha-256', 'sha-384', 'sha-512') OR length(a.blocks) = 0"
           " OR length(a.blocks) <> " SIZE_A " * (SELECT COUNT(*) FROM archive_timestamp_blocks b"
           " WHERE b.stamp = a.stamp) OR EXISTS (SELECT 1 FROM archive_timestamp_blocks b"
           " WHERE b.stamp = a.stamp AND (b.algorithm <> a.algorithm OR b.block < 0"
           " OR b.block >= length(a.blocks) / " SIZE_A "))"},
	{"its leaves are no hashes", BLOCK "length(b.leaves) = 0 OR length(b.leaves) % " SIZE_B
                                       " <> 0 OR length(b.leaves) / " SIZE_B " > 1024"},
	{"it is staged for none that is to come",
     BLOCK "b.stamp > (SELECT COALESCE(MAX(stamp), 0) FROM archive_timestamps)"
           " AND (b.stamp <> (SELECT COALESCE(MAX(stamp), 0) + 1 FROM archive_timestamps)"
           " OR (b.block <> 0 AND NOT EXISTS (SELECT 1 FROM archive_timestamp_blocks o"
           " WHERE o.stamp = b.stamp AND o.block = b.block - 1 AND o.algorithm = b.algorithm)))"},
	{"there is none",
     TOKEN "NOT CASE p.source WHEN 'stamp' THEN EXISTS (SELECT 1 FROM archive_timestamps a"
           " WHERE a.stamp = p.number) WHEN 'round' THEN EXISTS (SELECT 1 FROM seal_rounds r"
           " WHERE r.round = p.number) WHEN 'second' THEN EXISTS (SELECT 1 FROM round_tokens r"
           " WHERE r.round = p.number) ELSE 1 = 0 END"},
	{"what covers it does not hold it",
     TOKEN "(p.stamp IS NULL) <> (p.place IS NULL) OR (p.stamp IS NOT NULL AND NOT " HAS_PLACE
           ") OR (p.source = 'stamp' AND p.stamp <= p.number)"},
	{"it does not come to rest",
     "SELECT 'round ' || CAST(r.round AS TEXT) FROM seal_rounds r WHERE r.round <"
     " (SELECT MAX(number) FROM tokens_at_rest WHERE source = 'round')"
     " AND NOT EXISTS (SELECT 1 FROM tokens_at_rest t WHERE t.source = 'round'"
     " AND t.number = r.round)"},
	{"its archive timestamp does not hold it", CHAIN_WITH_BLOCK HAS_NO_PLACE},
	{"its documents were not issued", CHAIN "NOT " IS_ISSUED},
	{"it does not follow the one before",
     CHAIN "(p.chain = 1) <> (p.after_stamp IS NULL) OR (p.chain <> 1 AND NOT EXISTS (SELECT 1"
           " FROM evidence_chains o WHERE o.account = p.account"
           " AND o.certification = p.certification AND o.record = p.record"
           " AND o.chain = p.chain - 1 AND o.stamp <= p.after_stamp))"
           " OR (p.after_stamp IS NOT NULL AND (p.after_stamp >= p.stamp OR p.after_stamp NOT IN"
           " (SELECT a.stamp FROM archive_timestamps a)))"},
	{"what it covers are no hashes", CHAIN "length(p.hashes) = 0" NOT_BY("sha-256", "32")
                                         NOT_BY("sha-384", "48") NOT_BY("sha-512", "64")},
	{"it waits for evidence of what was not issued, or for no reason",
     "SELECT 'certification ' || CAST(p.certification AS TEXT) FROM evidence_queue p"
     " WHERE p.reason NOT IN ('first', 'digest', 'lost') OR NOT " IS_ISSUED},
	{"it has no evidence, and does not wait for any",
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

/* In one view. *ret_last: the last archive timestamp in it. */
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
	/* What a listener found wrong does not end the check. */
	for (int64_t stamp = 1; stamp <= last && !result && check->listener->archive_timestamp;
	     stamp++) {
		result = check->listener->archive_timestamp(check->listener->context, stamp);
		result = result == ERR_CORRUPT ? OK : result;
	}
	return result;
}
