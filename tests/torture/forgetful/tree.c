#include "tree.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct place {
	struct node *directory;
	char *name;
	struct node *node; /* NULL: the name is gone */
};

/* Of entries: one place, or a rename's two. */
struct change {
	struct change *next, *previous;
	struct place places[2];
	size_t place_count;
	bool chosen;
};

/* ---- tables ---- */

static struct entry *table_find(const struct table *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++)
		if (strcmp(table->entries[i].name, name) == 0)
			return &table->entries[i];
	return NULL;
}

static void table_add(struct table *table, const char *name, struct node *node)
{
	if (table->count == table->capacity) {
		table->capacity = table->capacity ? table->capacity * 2 : 8;
		table->entries = reallocarray(table->entries, table->capacity, sizeof *table->entries);
		if (!table->entries)
			err(1, "entries");
	}
	struct entry *entry = &table->entries[table->count++];
	entry->name = strdup(name);
	if (!entry->name)
		err(1, "name");
	entry->node = node;
	node_take(node);
}

/* Puts what the name stands for, or removes the name (NULL). */
static void table_set(struct tree *tree, struct table *table, const char *name, struct node *node)
{
	struct entry *entry = table_find(table, name);
	if (!entry && node) {
		table_add(table, name, node);
		return;
	}
	if (!entry)
		return;
	struct node *before = entry->node;
	if (node) {
		node_take(node);
		entry->node = node;
	} else {
		free(entry->name);
		*entry = table->entries[--table->count];
	}
	node_give(tree, before, 1);
}

static void table_clear(struct tree *tree, struct table *table)
{
	struct table cleared = *table;
	*table = (struct table){0};
	for (size_t i = 0; i < cleared.count; i++) {
		free(cleared.entries[i].name);
		node_give(tree, cleared.entries[i].node, 1);
	}
	free(cleared.entries);
}

/* ---- nodes ---- */

void node_take(struct node *node)
{
	node->references++;
}

void node_give(struct tree *tree, struct node *node, uint64_t count)
{
	node->references -= count;
	if (node->references)
		return;
	if (node->previous)
		node->previous->next = node->next;
	else
		tree->nodes = node->next;
	if (node->next)
		node->next->previous = node->previous;
	table_clear(tree, &node->visible);
	table_clear(tree, &node->durable);
	bytes_free(&node->bytes);
	free(node->target);
	free(node);
}

struct node *node_make(struct tree *tree, mode_t mode, uid_t uid, gid_t gid)
{
	struct node *node = calloc(1, sizeof *node);
	if (!node)
		err(1, "node");
	node->references = 1;
	node->attributes.st_ino = ++tree->last_number;
	node->attributes.st_mode = mode;
	node->attributes.st_uid = uid;
	node->attributes.st_gid = gid;
	clock_gettime(CLOCK_REALTIME, &node->attributes.st_mtim);
	node->attributes.st_atim = node->attributes.st_ctim = node->attributes.st_mtim;
	node->next = tree->nodes;
	if (node->next)
		node->next->previous = node;
	tree->nodes = node;
	return node;
}

struct node *node_find(const struct node *directory, const char *name)
{
	struct entry *entry = table_find(&directory->visible, name);
	return entry ? entry->node : NULL;
}

void tree_init(struct tree *tree, size_t sector_size, uint64_t seed, unsigned write_back_in)
{
	*tree = (struct tree){
		.sector_size = sector_size,
		.choice = {.state = seed},
		.write_back_in = write_back_in,
	};
	tree->root = node_make(tree, S_IFDIR | 0755, 0, 0);
	tree->root->attributes.st_nlink = 2;
}

/* ---- changes ---- */

static void place_set(struct change *change, struct node *directory, const char *name,
                      struct node *node)
{
	struct place *place = &change->places[change->place_count++];
	*place = (struct place){directory, strdup(name), node};
	if (!place->name)
		err(1, "name");
	node_take(directory);
	if (node)
		node_take(node);
}

static struct change *change_make(struct tree *tree)
{
	struct change *change = calloc(1, sizeof *change);
	if (!change)
		err(1, "change");
	change->previous = tree->newest;
	if (tree->newest)
		tree->newest->next = change;
	else
		tree->oldest = change;
	tree->newest = change;
	tree->pending++;
	return change;
}

static void change_free(struct tree *tree, struct change *change)
{
	if (change->previous)
		change->previous->next = change->next;
	else
		tree->oldest = change->next;
	if (change->next)
		change->next->previous = change->previous;
	else
		tree->newest = change->previous;
	tree->pending--;
	for (size_t i = 0; i < change->place_count; i++) {
		struct place *place = &change->places[i];
		node_give(tree, place->directory, 1);
		if (place->node)
			node_give(tree, place->node, 1);
		free(place->name);
	}
	free(change);
}

static void show(struct tree *tree, const struct change *change)
{
	for (size_t i = 0; i < change->place_count; i++) {
		const struct place *place = &change->places[i];
		table_set(tree, &place->directory->visible, place->name, place->node);
		clock_gettime(CLOCK_REALTIME, &place->directory->attributes.st_mtim);
	}
}

static void make_durable(struct tree *tree, struct change *change)
{
	for (size_t i = 0; i < change->place_count; i++) {
		const struct place *place = &change->places[i];
		table_set(tree, &place->directory->durable, place->name, place->node);
	}
	change_free(tree, change);
}

static bool touches(const struct change *change, const struct node *directory)
{
	return change->places[0].directory == directory ||
	       (change->place_count == 2 && change->places[1].directory == directory);
}

static bool share_a_name(const struct change *one, const struct change *other)
{
	for (size_t i = 0; i < one->place_count; i++)
		for (size_t j = 0; j < other->place_count; j++)
			if (one->places[i].directory == other->places[j].directory &&
			    strcmp(one->places[i].name, other->places[j].name) == 0)
				return true;
	return false;
}

/* A link's count is of what is seen. */
static void count_link(struct node *node, int difference)
{
	if (node)
		node->attributes.st_nlink += (nlink_t)difference;
}

void tree_link(struct tree *tree, struct node *directory, const char *name, struct node *node)
{
	count_link(node_find(directory, name), -1);
	count_link(node, S_ISDIR(node->attributes.st_mode) ? 2 : 1);
	struct change *change = change_make(tree);
	place_set(change, directory, name, node);
	show(tree, change);
}

void tree_unlink(struct tree *tree, struct node *directory, const char *name)
{
	count_link(node_find(directory, name), -1);
	struct change *change = change_make(tree);
	place_set(change, directory, name, NULL);
	show(tree, change);
}

void tree_rename(struct tree *tree, struct node *from, const char *name, struct node *to,
                 const char *new_name)
{
	struct node *node = node_find(from, name);
	struct node *replaced = node_find(to, new_name);
	if (node == replaced)
		return;
	count_link(replaced, -1);
	struct change *change = change_make(tree);
	place_set(change, from, name, NULL);
	place_set(change, to, new_name, node);
	show(tree, change);
}

void tree_sync_directory(struct tree *tree, const struct node *directory)
{
	/* With a change go the older ones of its names: later they would undo it. */
	for (struct change *change = tree->newest; change; change = change->previous) {
		change->chosen = touches(change, directory);
		for (struct change *later = change->next; later && !change->chosen; later = later->next)
			change->chosen = later->chosen && share_a_name(change, later);
	}
	for (struct change *change = tree->oldest, *next; change; change = next) {
		next = change->next;
		if (change->chosen)
			make_durable(tree, change);
	}
}

void tree_sync(struct tree *tree)
{
	for (struct node *node = tree->nodes; node; node = node->next)
		bytes_sync(&node->bytes);
	while (tree->oldest)
		make_durable(tree, tree->oldest);
}

void tree_write_back(struct tree *tree, struct node *written)
{
	if (!tree->write_back_in || choice_below(&tree->choice, tree->write_back_in))
		return;
	bytes_write_back(&written->bytes, &tree->choice);
	if (tree->oldest && choice_below(&tree->choice, 4) == 0)
		make_durable(tree, tree->oldest);
}

/* ---- cuts ---- */

static void choose_names(struct tree *tree, struct choice *choice, struct cut *cut)
{
	for (struct change *change = tree->oldest; change; change = change->next) {
		change->chosen = choice_keep(choice);
		for (struct change *older = tree->oldest; older != change && change->chosen;
		     older = older->next)
			change->chosen = older->chosen || !share_a_name(older, change);
	}
	while (tree->oldest) {
		if (tree->oldest->chosen) {
			cut->names_kept++;
			make_durable(tree, tree->oldest);
		} else {
			cut->names_lost++;
			change_free(tree, tree->oldest);
		}
	}
}

struct search {
	struct tree *tree;
	struct choice *choice;
	struct cut *cut;
};

static void fill_directory(struct search *search, const struct node *old, struct node *found);

/* What a durable node is found as, made when it is first come upon; by its links there may be
 * several ways to it. */
static struct node *find(struct search *search, struct node *old)
{
	if (old->found_as)
		return old->found_as;
	const struct stat *attributes = &old->attributes;
	struct node *found =
		node_make(search->tree, attributes->st_mode, attributes->st_uid, attributes->st_gid);
	found->attributes.st_mtim = attributes->st_mtim;
	found->attributes.st_rdev = attributes->st_rdev;
	if (old->target)
		found->target = strdup(old->target);
	old->found_as = found;
	found->bytes = bytes_after_cut(&old->bytes, search->choice, search->tree->sector_size,
	                               &search->cut->pages);
	fill_directory(search, old, found);
	return found;
}

static void fill_directory(struct search *search, const struct node *old, struct node *found)
{
	if (S_ISDIR(old->attributes.st_mode))
		found->attributes.st_nlink = 2;
	for (size_t i = 0; i < old->durable.count; i++) {
		const struct entry *entry = &old->durable.entries[i];
		struct node *node = find(search, entry->node);
		if (!S_ISDIR(node->attributes.st_mode))
			node->attributes.st_nlink++;
		table_add(&found->visible, entry->name, node);
		table_add(&found->durable, entry->name, node);
	}
}

struct cut tree_cut(struct tree *tree, struct choice *choice)
{
	struct cut cut = {0};
	struct search search = {tree, choice, &cut};
	choose_names(tree, choice, &cut);
	struct node *old = tree->nodes, *root = tree->root;
	struct node found = {.attributes = root->attributes};
	fill_directory(&search, root, &found);
	/* New nodes precede the old ones. Each old one is held while names are taken from it. */
	for (struct node *node = old; node; node = node->next)
		node_take(node);
	for (struct node *node = old, *next; node; node = next) {
		table_clear(tree, &node->visible);
		table_clear(tree, &node->durable);
		if (node->found_as)
			node_give(tree, node->found_as, 1);
		node->found_as = NULL;
		next = node->next;
	}
	for (struct node *node = old, *next; node; node = next) {
		next = node->next;
		node_give(tree, node, 1);
	}
	root->visible = found.visible;
	root->durable = found.durable;
	return cut;
}
