/* Documents of certifications: lookups and lists. */
#include "store/certifications/certifications.h"
#include "store/certifications/read_certification.h"
#include "store/shards/shard_routing.h"

/* ---- documents ---- */

#define DOCUMENTS                                                                                  \
	"SELECT f.name, f.kind, f.language, f.object, f.size_bytes, f.sha256, f.account,"              \
	" f.shared_object, f.pieces, COALESCE(f.own_bytes, f.size_bytes)"

static void copy_text(char *field, size_t size, struct slice text)
{
	size_t count = text.size < size - 1 ? text.size : size - 1;
	memcpy(field, text.data, count);
	field[count] = '\0';
}

static void read_document(struct db_query *query, struct document *document)
{
	struct slice kind = db_text(query, 1);
	*document = (struct document){
		.kind = slice_is(kind, "report")     ? DOCUMENT_REPORT
	            : slice_is(kind, "evidence") ? DOCUMENT_EVIDENCE
	                                         : DOCUMENT_PART,
		.language = slice_is(db_text(query, 2), "es") ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH,
		.size_bytes = db_integer(query, 4),
		.sha256 = store_sha256(db_blob(query, 5)),
		.account = db_integer(query, 6),
		.own_bytes = db_integer(query, 9),
	};
	copy_text(document->name, sizeof document->name, db_text(query, 0));
	copy_text(document->object, sizeof document->object, db_text(query, 3));
	copy_text(document->shared, sizeof document->shared, db_text(query, 7));
	copy_text(document->pieces, sizeof document->pieces, db_text(query, 8));
}

static int count_documents(struct db_connection *connection, int64_t account, int64_t certification,
                           int64_t *ret_count, struct error *error)
{
	struct db_query *query = db_query(connection, "SELECT COUNT(*) FROM issued_files"
	                                              " WHERE account = $1 AND certification = $2");
	db_bind(query, account, certification);
	*ret_count = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

static int list_documents(struct db_connection *connection, int64_t account, int64_t certification,
                          struct arena *arena, struct document **ret_documents, size_t *ret_count,
                          struct error *error)
{
	int64_t limit;
	int result = count_documents(connection, account, certification, &limit, error);
	if (result)
		return result;
	struct document *documents = arena_alloc(arena, (size_t)(limit + 1) * sizeof *documents);
	if (!documents)
		return error_cause(error, ERR_NO_MEMORY, "documents of a certification");
	struct db_query *query =
		db_query(connection, DOCUMENTS " FROM issued_files f WHERE account = $1"
	                                   " AND certification = $2 ORDER BY CASE kind"
	                                   " WHEN 'report' THEN 0 WHEN 'evidence' THEN 1 ELSE 2 END,"
	                                   " language DESC, LENGTH(name), name LIMIT $3");
	db_bind(query, account, certification, limit);
	size_t count = 0;
	while (db_step(query))
		read_document(query, &documents[count++]);
	result = db_end(query, error);
	if (!result) {
		*ret_documents = documents;
		*ret_count = count;
	}
	return result;
}

int store_list_documents(struct store *store, int64_t account, int64_t certification,
                         struct arena *arena, struct document **ret_documents, size_t *ret_count,
                         struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	return end_read(connection, list_documents(connection, account, certification, arena,
	                                           ret_documents, ret_count, error));
}

int object_is_own(struct db_connection *connection, int64_t account, const char *object,
                  bool *ret_own, struct error *error)
{
	struct db_query *query = db_query(connection, "SELECT 1 FROM issued_files WHERE account = $1"
	                                              " AND object = $2 AND shared_object IS NULL");
	db_bind(query, account, object);
	*ret_own = db_step(query);
	return db_end(query, error);
}

/* Removes documents whose shared object no longer belongs to a document; new documents must not
 * refer to it. */
static int keep_whole(struct db_connection *connection, int64_t account, struct document *documents,
                      size_t *count, struct error *error)
{
	size_t kept = 0;
	for (size_t i = 0; i < *count; i++) {
		bool own = true;
		int result = documents[i].shared[0]
		                 ? object_is_own(connection, account, documents[i].shared, &own, error)
		                 : OK;
		if (result)
			return result;
		if (own)
			documents[kept++] = documents[i];
	}
	*count = kept;
	return OK;
}

static int find_like(struct db_connection *connection, const struct certification *certification,
                     int64_t since_us, int64_t *ret_found, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT certification FROM certifications WHERE account = $1"
	                         " AND chain = $2 AND first_sequence = $3 AND last_sequence = $4"
	                         " AND status = 'completed' AND completed_at >= $5"
	                         " ORDER BY certification DESC LIMIT 1");
	db_bind(query, certification->account, certification->chain, certification->first_sequence,
	        certification->last_sequence, since_us);
	*ret_found = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

int store_has_same_range_certification(struct store *store,
                                       const struct certification *certification, int64_t since_us,
                                       bool *ret_has, struct error *error)
{
	int64_t found = 0;
	struct db_connection *connection = begin_read(store, &error);
	int result =
		end_read(connection, find_like(connection, certification, since_us, &found, error));
	*ret_has = found > 0;
	return result;
}

int store_list_same_range_documents(struct store *store, const struct certification *certification,
                                    int64_t since_us, struct arena *arena,
                                    struct document **ret_documents, size_t *ret_count,
                                    struct error *error)
{
	int64_t found = 0;
	struct db_connection *connection = begin_read(store, &error);
	struct document *documents = NULL;
	size_t count = 0;
	int result = find_like(connection, certification, since_us, &found, error);
	if (!result && found)
		result = list_documents(connection, certification->account, found, arena, &documents,
		                        &count, error);
	if (!result)
		result = keep_whole(connection, certification->account, documents, &count, error);
	result = end_read(connection, result);
	if (!result) {
		*ret_documents = documents;
		*ret_count = count;
	}
	return result;
}

#define NAMED_DOCUMENT                                                                             \
	DOCUMENTS " FROM issued_files f JOIN certifications c"                                         \
			  " ON c.account = f.account AND c.certification = f.certification"                    \
			  " WHERE c.certification_id = $1 AND f.name = $2"

int store_find_document(struct store *store, struct slice certification_id, struct slice name,
                        struct document *ret, struct error *error)
{
	int64_t account;
	struct db_connection *connection = begin_read(store, &error);
	bool located =
		routing_is_located(connection, &ROUTING_PLACE("certifications", "certification_id"),
	                       certification_id, &account);
	struct db_query *query =
		located ? db_query(connection, NAMED_DOCUMENT " AND f.account = $3 AND c.account = $3")
				: db_query(connection, NAMED_DOCUMENT);
	db_bind(query, certification_id, name);
	if (located)
		db_bind_integer(query, account);
	bool found = db_step(query);
	struct document document;
	if (found)
		read_document(query, &document);
	int result = end_read(connection, db_end(query, error));
	if (!result && found)
		*ret = document;
	return result ? result : found ? OK : ERR_NOT_FOUND;
}

#define BY_DIGEST(of)                                                                              \
	CERTIFICATIONS " JOIN issued_files f ON f.account = c.account"                                 \
				   " AND f.certification = c.certification WHERE f.sha256 = $1"                    \
				   " AND c.status = 'completed'" of " ORDER BY c.certification LIMIT 1"

static struct db_query *ask_digest(struct db_connection *connection, const struct sha256 *digest)
{
	static const struct routing_place place = {"issued_files", "sha256 = decode(", ", 'hex')"};
	char hex[2 * SHA256_SIZE + 1];
	int64_t account;
	hex_encode(digest->bytes, SHA256_SIZE, hex);
	bool located = routing_is_located(connection, &place, slice_of(hex), &account);
	struct db_query *query =
		located ? db_query(connection, BY_DIGEST(" AND f.account = $2 AND c.account = $2"))
				: db_query(connection, BY_DIGEST(""));
	db_bind_blob(query, digest, sizeof *digest);
	if (located)
		db_bind_integer(query, account);
	return query;
}

static struct db_query *ask_code(struct db_connection *connection, struct slice code)
{
	return routing_query_one(
		connection, ROUTING_PLACE("certifications", "verification_code"), code,
		ROUTING_TEXTS(CERTIFICATIONS " WHERE c.verification_code = $1 AND c.status = 'completed'",
	                  "c."));
}

int store_find_issued(struct store *store, struct slice code, const struct sha256 *digest,
                      struct arena *arena, struct certification *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena};
	row.query = digest ? ask_digest(connection, digest) : ask_code(connection, code);
	return end_read(connection, read_certification(&row, ret, error));
}

/* ---- housekeeping ---- */

/* Returns the certification of a document that is being issued, from its name
 * "issued/CERTIFICATION/xx/…"; empty for any other object. */
static struct slice certification_of(const char *object)
{
	static const char issued[] = "issued/";
	if (strncmp(object, issued, sizeof issued - 1) != 0)
		return slice_of("");
	const char *id = object + sizeof issued - 1;
	const char *end = strchr(id, '/');
	bool deeper = end && strchr(end + 1, '/');
	return deeper ? slice_make(id, (size_t)(end - id)) : slice_of("");
}

int store_is_object_referenced(struct store *store, const char *object, bool *ret_named,
                               struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT 1 WHERE EXISTS (SELECT 1 FROM events WHERE content_object = $1"
	                         " AND content_object IS NOT NULL)"
	                         " OR EXISTS (SELECT 1 FROM issued_files WHERE object = $1)"
	                         " OR EXISTS (SELECT 1 FROM issued_files WHERE shared_object = $1"
	                         " AND shared_object IS NOT NULL)"
	                         " OR EXISTS (SELECT 1 FROM certifications WHERE certification_id = $2"
	                         " AND status = 'processing')");
	db_bind(query, object, certification_of(object));
	bool named = db_step(query);
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_named = named;
	return result;
}
