#include "store/certifications/certifications.h"
#include "store/certifications/read_certification.h"
#include "store/work.h"

/* ---- documents ---- */

#define DOCUMENTS "SELECT f.name, f.kind, f.language, f.object, f.size_bytes, f.sha256, f.account"

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
	};
	copy_text(document->name, sizeof document->name, db_text(query, 0));
	copy_text(document->object, sizeof document->object, db_text(query, 3));
}

static int count_documents(struct db_connection *connection, int64_t account, int64_t certification,
                           int64_t *ret_count, struct error *error)
{
	struct db_query *query = db_query(connection, "SELECT COUNT(*) FROM issued_files"
	                                              " WHERE account = $1 AND certification = $2");
	db_bind_integer(query, account);
	db_bind_integer(query, certification);
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
	db_bind_integer(query, account);
	db_bind_integer(query, certification);
	db_bind_integer(query, limit);
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
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	return end_read(connection, list_documents(connection, account, certification, arena,
	                                           ret_documents, ret_count, error));
}

#define NAMED_DOCUMENT                                                                             \
	DOCUMENTS " FROM issued_files f JOIN certifications c"                                         \
			  " ON c.account = f.account AND c.certification = f.certification"                    \
			  " WHERE c.certification_id = $1 AND f.name = $2"

/* While a server is away: whose it is, asked of the others. *ret_locates: it was. */
static int locate(struct store *store, const struct work_place *place, struct slice value,
                  bool *ret_locates, int64_t *ret_account, struct error *error)
{
	*ret_locates = db_misses_servers(store->db);
	return *ret_locates ? work_locate(store->db, place, value, ret_account, error) : OK;
}

int store_find_document(struct store *store, struct slice certification_id, struct slice name,
                        struct document *ret, struct error *error)
{
	static const struct work_place place = {"certifications", "certification_id = ", ""};
	struct db_connection *connection;
	bool locates;
	int64_t account;
	int result = locate(store, &place, certification_id, &locates, &account, error);
	if (!result)
		result = begin_read(store, &connection, error);
	if (result)
		return result;
	struct db_query *query =
		locates ? db_query(connection, NAMED_DOCUMENT " AND f.account = $3 AND c.account = $3")
				: db_query(connection, NAMED_DOCUMENT);
	db_bind_text(query, certification_id);
	db_bind_text(query, name);
	if (locates)
		db_bind_integer(query, account);
	bool found = db_step(query);
	struct document document;
	if (found)
		read_document(query, &document);
	result = end_read(connection, db_end(query, error));
	if (!result && found)
		*ret = document;
	return result ? result : found ? OK : ERR_NOT_FOUND;
}

#define BY_DIGEST(of)                                                                              \
	CERTIFICATIONS " JOIN issued_files f ON f.account = c.account"                                 \
				   " AND f.certification = c.certification WHERE f.sha256 = $1"                    \
				   " AND c.status = 'completed'" of " ORDER BY c.certification LIMIT 1"
#define BY_CODE CERTIFICATIONS " WHERE c.verification_code = $1 AND c.status = 'completed'"
#define OF_ACCOUNT " AND c.account = $2 AND h.account = $2"

int store_find_issued(struct store *store, struct slice code, const struct sha256 *digest,
                      struct arena *arena, struct certification *ret, struct error *error)
{
	static const struct work_place of_code = {"certifications", "verification_code = ", ""};
	static const struct work_place of_digest = {"issued_files", "sha256 = decode(", ", 'hex')"};
	struct db_connection *connection;
	char hex[2 * SHA256_SIZE + 1];
	bool locates;
	int64_t account;
	if (digest)
		hex_encode(digest->bytes, SHA256_SIZE, hex);
	int result = locate(store, digest ? &of_digest : &of_code, digest ? slice_of(hex) : code,
	                    &locates, &account, error);
	if (!result)
		result = begin_read(store, &connection, error);
	if (result)
		return result;
	struct row row = {.arena = arena};
	if (digest && locates)
		row.query = db_query(connection, BY_DIGEST(OF_ACCOUNT " AND f.account = $2"));
	else if (digest)
		row.query = db_query(connection, BY_DIGEST(""));
	else
		row.query =
			locates ? db_query(connection, BY_CODE OF_ACCOUNT) : db_query(connection, BY_CODE);
	if (digest)
		db_bind_blob(row.query, digest, sizeof *digest);
	else
		db_bind_text(row.query, code);
	if (locates)
		db_bind_integer(row.query, account);
	return end_read(connection, read_certification(&row, ret, error));
}

/* ---- housekeeping ---- */

/* The certification that a document being issued is for, by its name: "issued/CERTIFICATION/xx/…";
 * empty for any other object. */
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

int store_object_is_named(struct store *store, const char *object, bool *ret_named,
                          struct error *error)
{
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "SELECT 1 WHERE EXISTS (SELECT 1 FROM events WHERE content_object = $1"
	                         " AND content_object IS NOT NULL)"
	                         " OR EXISTS (SELECT 1 FROM issued_files WHERE object = $1)"
	                         " OR EXISTS (SELECT 1 FROM certifications WHERE certification_id = $2"
	                         " AND status = 'processing')");
	db_bind_string(query, object);
	db_bind_text(query, certification_of(object));
	bool named = db_step(query);
	result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_named = named;
	return result;
}
