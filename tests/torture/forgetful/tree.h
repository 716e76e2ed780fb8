/* A tree of files and directories, twice: its visible state, and the state after a cut.
 *
 * Every change of a directory's entries is durable once that directory is synced, or the other one
 * of a rename. A rename happens wholly or not at all; changes of the same name keep their order;
 * beyond that, each unsynced change may survive a cut without any other, and a name without the
 * file's bytes. Syncing a file says nothing about its name. Owners, modes and times are durable
 * at once: nothing that is tested here depends on them.
 *
 * One thread. No memory ends the program. */
#ifndef FORGETFUL_TREE_H
#define FORGETFUL_TREE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "bytes.h"

struct entry {
	char *name;
	struct node *node;
};

struct table {
	struct entry *entries;
	size_t count;
	size_t capacity;
};

struct node {
	struct node *next, *previous; /* of all nodes */
	size_t references;            /* the kernel's look-ups among them */
	struct stat attributes;       /* but for the size */
	char *target;                 /* of a symbolic link */
	struct bytes bytes;           /* of a file */
	struct table visible;         /* of a directory */
	struct table durable;
	struct node *found_as; /* during a cut: what it becomes */
};

struct tree {
	struct node *nodes; /* the root is the last of them */
	struct node *root;
	struct change *oldest;
	struct change *newest;
	size_t pending; /* changes */
	ino_t last_number;
	size_t sector_size;
	struct choice choice;   /* of what is written back without a sync */
	unsigned write_back_in; /* one write in this number; 0: none */
};

/* Of names: changes that a cut kept, and those that it took back. */
struct cut {
	struct loss pages;
	uint64_t names_kept;
	uint64_t names_lost;
};

void tree_init(struct tree *tree, size_t sector_size, uint64_t seed, unsigned write_back_in);

void node_take(struct node *node);
void node_give(struct tree *tree, struct node *node, uint64_t count);
/* A new one, without a name, with one reference. */
struct node *node_make(struct tree *tree, mode_t mode, uid_t uid, gid_t gid);
/* What has the name, or NULL; no reference is taken. */
struct node *node_find(const struct node *directory, const char *name);

/* Gives the name to the node; what had it before loses it. */
void tree_link(struct tree *tree, struct node *directory, const char *name, struct node *node);
void tree_unlink(struct tree *tree, struct node *directory, const char *name);
void tree_rename(struct tree *tree, struct node *from, const char *name, struct node *to,
                 const char *new_name);
void tree_sync_directory(struct tree *tree, const struct node *directory);
/* Everything, as syncfs does. */
void tree_sync(struct tree *tree);
/* A file was written: now and then something becomes durable without a sync. */
void tree_write_back(struct tree *tree, struct node *written);

/* The root's entries become what is found after a cut, made of new nodes. What was open stays as it
 * was, visible to its openers only. `kept_percent` of what was not synced survives. */
struct cut tree_cut(struct tree *tree, struct choice *choice);

#endif
