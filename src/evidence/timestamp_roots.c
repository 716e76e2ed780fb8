#include "evidence/timestamp_roots.h"

#include "seal/trust.h"
#include "store/evidence/timestamp_root_records.h"

#define PATH_PEM_MAX ((size_t)1 << 20)
#define LIST_MEMORY_MAX ((size_t)16 << 20)

/* Paths are identified by the first bytes of their digest. */
static uint64_t name_of(struct slice path)
{
	struct sha256 digest = sha256_of(path.data, path.size);
	uint64_t name;
	memcpy(&name, digest.bytes, sizeof name);
	return name;
}

static bool is_kept(struct service *service, uint64_t name)
{
	for (size_t i = 0; i < RECORDED_ROOTS_MAX; i++)
		if (atomic_load(&service->recorded_roots[i]) == name)
			return true;
	return false;
}

/* Uses a free slot, or replaces another entry, which is then only recorded again. */
static void note_kept(struct service *service, uint64_t name)
{
	for (size_t i = 0; i < RECORDED_ROOTS_MAX; i++) {
		uint64_t nothing = 0;
		if (atomic_compare_exchange_strong(&service->recorded_roots[i], &nothing, name))
			return;
	}
	atomic_store(&service->recorded_roots[name % RECORDED_ROOTS_MAX], name);
}

int timestamp_roots_record(struct service *service, struct slice path, struct error *error)
{
	BUF_AUTO struct buf pem, root;
	struct certificate_facts facts;
	uint64_t name = name_of(path);
	buf_init(&pem, PATH_PEM_MAX);
	buf_init(&root, PATH_PEM_MAX);
	if (is_kept(service, name))
		return OK;
	int result = trust_path_to_pem(path, &pem, error);
	if (!result)
		result = trust_add_roots(buf_slice(&pem), &root, error);
	if (!result && root.size > 0)
		result = trust_describe(buf_slice(&root), &facts, error);
	if (!result && root.size > 0)
		result = store_add_timestamp_root(service->store, &facts.sha256, buf_slice(&root), error);
	if (!result)
		note_kept(service, name);
	return result;
}

int timestamp_roots_add(struct store *store, struct buf *out, struct error *error)
{
	ARENA_AUTO struct arena arena;
	const char **items;
	size_t count;
	arena_init(&arena, LIST_MEMORY_MAX);
	int result = store_list_timestamp_roots(store, &arena, &items, &count, error);
	for (size_t i = 0; !result && i < count; i++)
		result = trust_add_roots(slice_of(items[i]), out, error);
	return result;
}
