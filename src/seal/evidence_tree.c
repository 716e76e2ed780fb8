#include "seal/evidence_tree.h"

#include <assert.h>
#include <stdlib.h>

#include "seal/evidence_asn1.h"

/* Replaces a level by the level above it and returns its size. */
static size_t join(struct digest *nodes, size_t count)
{
	size_t above = 0;
	for (size_t i = 0; i < count; i += 2, above++)
		nodes[above] = i + 1 < count ? evidence_pair(&nodes[i], &nodes[i + 1]) : nodes[i];
	return above;
}

static struct digest *copy(const struct digest *leaves, size_t count)
{
	assert(count >= 1 && count <= EVIDENCE_TREE_MAX);
	struct digest *nodes = malloc(count * sizeof *nodes);
	if (nodes)
		memcpy(nodes, leaves, count * sizeof *nodes);
	return nodes;
}

int evidence_tree_root(const struct digest *leaves, size_t count, struct digest *ret_root)
{
	struct digest *nodes = copy(leaves, count);
	if (!nodes)
		return ERR_NO_MEMORY;
	while (count > 1)
		count = join(nodes, count);
	*ret_root = nodes[0];
	free(nodes);
	return OK;
}

int evidence_tree_climb(const struct digest *leaves, size_t count, size_t index,
                        struct evidence_path *path)
{
	assert(index < count);
	struct digest *nodes = copy(leaves, count);
	if (!nodes)
		return ERR_NO_MEMORY;
	for (; count > 1; count = join(nodes, count), index /= 2)
		if ((index ^ 1) < count) {
			assert(path->count < TREE_PROOF_MAX);
			path->siblings[path->count++] = nodes[index ^ 1];
		}
	free(nodes);
	return OK;
}

void evidence_hashes_write(const struct digest *hashes, size_t count, struct buf *out)
{
	for (size_t i = 0; i < count; i++)
		buf_add_slice(out, digest_slice(&hashes[i]));
}

struct digest *evidence_hashes_read(struct slice bytes, enum digest_algorithm algorithm,
                                    struct arena *arena, size_t *ret_count)
{
	size_t size = digest_size(algorithm), count = bytes.size / size;
	if (count < 1 || count > EVIDENCE_TREE_MAX || bytes.size % size != 0)
		return NULL;
	struct digest *hashes = arena_alloc(arena, count * sizeof *hashes);
	for (size_t i = 0; hashes && i < count; i++) {
		hashes[i] = (struct digest){.algorithm = algorithm};
		memcpy(hashes[i].bytes, bytes.data + i * size, size);
	}
	*ret_count = count;
	return hashes;
}
