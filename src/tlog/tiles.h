/* Tiles: the form in which a transparency log stores and serves its Merkle tree (C2SP tlog-tiles).
 *
 * Tile n of level l has the hashes of the nodes 256n to 256n + 255 at the height 8l of the tree.
 * Only the last tile of a level is partial; full tiles never change. Pure functions. */
#ifndef TLOG_TILES_H
#define TLOG_TILES_H

#include "tlog/merkle.h"

#define TILE_WIDTH 256
#define TILE_HEIGHT 8
#define TILE_LEVELS 7     /* of a tree of MERKLE_SIZE_MAX leaves */
#define TILE_PATH_SIZE 64 /* maximum, with the NUL */
#define TILE_ENTRIES (-1) /* in place of a level: a bundle of entries */

struct tile_id {
	int level;      /* 0 to TILE_LEVELS - 1, or TILE_ENTRIES */
	uint64_t index; /* within its level */
	unsigned width; /* hashes or entries, 1 to TILE_WIDTH */
};

/* The width of a tile in the tree of `size` leaves; 0: it has none there. */
unsigned tile_width(int level, uint64_t index, uint64_t size);

/* Writes the path below the log's prefix: "tile/0/x001/234.p/8", "tile/entries/000". */
void tile_path(const struct tile_id *id, char path[TILE_PATH_SIZE]);
/* Reads such a path. Returns false if it is not exactly as tile_path writes it. */
bool tile_path_parse(struct slice path, struct tile_id *ret) MUST_CHECK;

/* Where tiles are kept. Both functions return 0 or the error. */
struct tile_store {
	/* Reads the first id->width hashes of a tile, which has that number. */
	int (*read)(void *context, const struct tile_id *id, struct sha256 *ret_hashes,
	            struct error *error);
	/* Keeps a tile in place of a narrower one with the same first hashes. */
	int (*write)(void *context, const struct tile_id *id, const struct sha256 *hashes,
	             struct error *error);
	void *context;
};

/* Reads nodes of the tree from the tiles of the tree of `size` leaves. It keeps the tiles read
 * last, one for each level. Not thread safe. */
struct tile_reader {
	const struct tile_store *store;
	uint64_t size;
	struct {
		unsigned width; /* 0: none */
		uint64_t index;
		struct sha256 hashes[TILE_WIDTH];
	} kept[TILE_LEVELS];
};
/* Returns the source; the reader must outlive it. 58 KiB are too much for a small stack. */
struct merkle_source tile_reader_init(struct tile_reader *reader, const struct tile_store *store,
                                      uint64_t size);

/* Computes the root of a full tile, which is a hash of the tile above. */
struct sha256 tile_root(const struct sha256 hashes[TILE_WIDTH]);

/* Appends leaves to the tree of `size` leaves, and writes each tile that changes once. */
int tiles_append(const struct tile_store *store, uint64_t size, const struct sha256 *leaves,
                 size_t count, struct error *error) MUST_CHECK;

#endif
