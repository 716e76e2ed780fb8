#include "operations.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#define ATTRIBUTES_LAST_S 3600.0
#define BLOCKS ((fsblkcnt_t)1 << 24)

static struct file_system *file_system_of(fuse_req_t request)
{
	return fuse_req_userdata(request);
}

static struct tree *tree_of(fuse_req_t request)
{
	return &file_system_of(request)->tree;
}

static struct node *node_of(fuse_req_t request, fuse_ino_t number)
{
	return number == FUSE_ROOT_ID ? tree_of(request)->root : (struct node *)number;
}

static struct stat attributes_of(const struct node *node)
{
	struct stat attributes = node->attributes;
	attributes.st_size = (off_t)node->bytes.visible_size;
	attributes.st_blksize = PAGE_SIZE;
	attributes.st_blocks = (attributes.st_size + 511) / 512;
	return attributes;
}

/* The kernel counts one look-up. A cut replaces the root's entries: they are looked up again. */
static struct fuse_entry_param entry_of(fuse_req_t request, fuse_ino_t parent, struct node *node)
{
	node_take(node);
	return (struct fuse_entry_param){
		.ino = (fuse_ino_t)node,
		.attr = attributes_of(node),
		.attr_timeout = ATTRIBUTES_LAST_S,
		.entry_timeout = parent == FUSE_ROOT_ID ? 0 : ATTRIBUTES_LAST_S,
	};
}

/* As every answer, this frees the request. */
static void reply_entry(fuse_req_t request, fuse_ino_t parent, struct node *node)
{
	struct tree *tree = tree_of(request);
	struct fuse_entry_param entry = entry_of(request, parent, node);
	if (fuse_reply_entry(request, &entry) != 0)
		node_give(tree, node, 1);
}

/* ---- names ---- */

static void look_up(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	struct node *node = node_find(node_of(request, parent), name);
	if (node)
		reply_entry(request, parent, node);
	else
		fuse_reply_err(request, ENOENT);
}

static void forget(fuse_req_t request, fuse_ino_t number, uint64_t count)
{
	if (number != FUSE_ROOT_ID)
		node_give(tree_of(request), node_of(request, number), count);
	fuse_reply_none(request);
}

static void forget_several(fuse_req_t request, size_t count, struct fuse_forget_data *forgotten)
{
	for (size_t i = 0; i < count; i++)
		if (forgotten[i].ino != FUSE_ROOT_ID)
			node_give(tree_of(request), node_of(request, forgotten[i].ino), forgotten[i].nlookup);
	fuse_reply_none(request);
}

/* Makes something with a name, of which the caller has a reference; NULL when it was answered that
 * the name is taken. */
static struct node *make(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
	const struct fuse_ctx *caller = fuse_req_ctx(request);
	struct node *directory = node_of(request, parent);
	if (node_find(directory, name)) {
		fuse_reply_err(request, EEXIST);
		return NULL;
	}
	struct node *node = node_make(tree_of(request), mode, caller->uid, caller->gid);
	tree_link(tree_of(request), directory, name, node);
	return node;
}

static void make_node(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
                      dev_t device)
{
	struct tree *tree = tree_of(request);
	struct node *node = make(request, parent, name, mode);
	if (!node)
		return;
	node->attributes.st_rdev = device;
	reply_entry(request, parent, node);
	node_give(tree, node, 1);
}

static void make_directory(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
	make_node(request, parent, name, S_IFDIR | mode, 0);
}

static void make_symbolic_link(fuse_req_t request, const char *target, fuse_ino_t parent,
                               const char *name)
{
	struct tree *tree = tree_of(request);
	struct node *node = make(request, parent, name, S_IFLNK | 0777);
	if (!node)
		return;
	node->target = strdup(target);
	if (!node->target)
		err(1, "target");
	reply_entry(request, parent, node);
	node_give(tree, node, 1);
}

static void read_symbolic_link(fuse_req_t request, fuse_ino_t number)
{
	fuse_reply_readlink(request, node_of(request, number)->target);
}

static void create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
                   struct fuse_file_info *file)
{
	struct tree *tree = tree_of(request);
	struct node *node = make(request, parent, name, S_IFREG | mode);
	if (!node)
		return;
	struct fuse_entry_param entry = entry_of(request, parent, node);
	file->keep_cache = 1;
	if (fuse_reply_create(request, &entry, file) != 0)
		node_give(tree, node, 1);
	node_give(tree, node, 1);
}

static void make_link(fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char *name)
{
	struct node *node = node_of(request, number);
	tree_link(tree_of(request), node_of(request, parent), name, node);
	reply_entry(request, parent, node);
}

static void remove_name(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	struct node *directory = node_of(request, parent);
	const struct node *node = node_find(directory, name);
	int error = !node ? ENOENT : node->visible.count ? ENOTEMPTY : 0;
	if (!error)
		tree_unlink(tree_of(request), directory, name);
	fuse_reply_err(request, error);
}

static void rename_name(fuse_req_t request, fuse_ino_t parent, const char *name,
                        fuse_ino_t new_parent, const char *new_name, unsigned flags)
{
	struct node *from = node_of(request, parent), *to = node_of(request, new_parent);
	const struct node *replaced = node_find(to, new_name);
	int error = 0;
	if (flags & ~(unsigned)RENAME_NOREPLACE)
		error = EINVAL;
	else if (!node_find(from, name))
		error = ENOENT;
	else if (replaced && flags & RENAME_NOREPLACE)
		error = EEXIST;
	else if (replaced && replaced->visible.count)
		error = ENOTEMPTY;
	else
		tree_rename(tree_of(request), from, name, to, new_name);
	fuse_reply_err(request, error);
}

/* ---- attributes ---- */

static void get_attributes(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
	struct stat attributes = attributes_of(node_of(request, number));
	fuse_reply_attr(request, &attributes, ATTRIBUTES_LAST_S);
}

static void set_attributes(fuse_req_t request, fuse_ino_t number, struct stat *wanted, int which,
                           struct fuse_file_info *file)
{
	struct node *node = node_of(request, number);
	struct stat *attributes = &node->attributes;
	if (which & FUSE_SET_ATTR_SIZE)
		bytes_resize(&node->bytes, (uint64_t)wanted->st_size);
	if (which & FUSE_SET_ATTR_MODE)
		attributes->st_mode = (attributes->st_mode & S_IFMT) | (wanted->st_mode & ~S_IFMT);
	if (which & FUSE_SET_ATTR_UID)
		attributes->st_uid = wanted->st_uid;
	if (which & FUSE_SET_ATTR_GID)
		attributes->st_gid = wanted->st_gid;
	if (which & FUSE_SET_ATTR_MTIME)
		attributes->st_mtim = wanted->st_mtim;
	if (which & (FUSE_SET_ATTR_MTIME_NOW | FUSE_SET_ATTR_SIZE))
		clock_gettime(CLOCK_REALTIME, &attributes->st_mtim);
	get_attributes(request, number, file);
}

static void get_statistics(fuse_req_t request, fuse_ino_t number)
{
	struct statvfs statistics = {
		.f_bsize = PAGE_SIZE,
		.f_frsize = PAGE_SIZE,
		.f_blocks = BLOCKS,
		.f_bfree = BLOCKS / 2,
		.f_bavail = BLOCKS / 2,
		.f_files = BLOCKS,
		.f_ffree = BLOCKS / 2,
		.f_namemax = 255,
	};
	fuse_reply_statfs(request, &statistics);
}

/* ---- bytes ---- */

static void open_file(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
	if (file->flags & O_TRUNC)
		bytes_resize(&node_of(request, number)->bytes, 0);
	file->keep_cache = 1; /* no other process changes a file */
	fuse_reply_open(request, file);
}

static void read_file(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
                      struct fuse_file_info *file)
{
	char *data = malloc(size);
	if (!data)
		err(1, "read");
	size_t got = bytes_read(&node_of(request, number)->bytes, (uint64_t)offset, data, size);
	fuse_reply_buf(request, data, got);
	free(data);
}

static void write_file(fuse_req_t request, fuse_ino_t number, const char *data, size_t size,
                       off_t offset, struct fuse_file_info *file)
{
	struct node *node = node_of(request, number);
	bytes_write(&node->bytes, (uint64_t)offset, data, size);
	clock_gettime(CLOCK_REALTIME, &node->attributes.st_mtim);
	tree_write_back(tree_of(request), node);
	fuse_reply_write(request, size);
}

static void allocate(fuse_req_t request, fuse_ino_t number, int mode, off_t offset, off_t size,
                     struct fuse_file_info *file)
{
	struct bytes *bytes = &node_of(request, number)->bytes;
	if (mode == 0 && (uint64_t)(offset + size) > bytes->visible_size)
		bytes_resize(bytes, (uint64_t)(offset + size));
	fuse_reply_err(request, mode == 0 ? 0 : EOPNOTSUPP);
}

/* ---- syncs ---- */

/* Whether it was dealt with: held for ever, or made to fail. `bytes` is what it should keep. */
static bool intercept(fuse_req_t request, struct bytes *bytes)
{
	struct file_system *file_system = file_system_of(request);
	file_system->syncs++;
	if (file_system->freeze_in && --file_system->freeze_in == 0) {
		file_system->power = POWER_FAILING;
		file_system->held = request;
		return true;
	}
	if (file_system->fail_in && --file_system->fail_in == 0) {
		file_system->failed++;
		if (bytes && file_system->failure_forgets)
			bytes_forget_dirty(bytes);
		fuse_reply_err(request, EIO);
		return true;
	}
	return false;
}

static void sync_file(fuse_req_t request, fuse_ino_t number, int only_data,
                      struct fuse_file_info *file)
{
	struct bytes *bytes = &node_of(request, number)->bytes;
	if (intercept(request, bytes))
		return;
	bytes_sync(bytes);
	fuse_reply_err(request, 0);
}

static void sync_directory(fuse_req_t request, fuse_ino_t number, int only_data,
                           struct fuse_file_info *file)
{
	if (intercept(request, NULL))
		return;
	tree_sync_directory(tree_of(request), node_of(request, number));
	fuse_reply_err(request, 0);
}

static void set_attribute(fuse_req_t request, fuse_ino_t number, const char *name,
                          const char *value, size_t size, int flags)
{
	if (strcmp(name, SYNCFS_ATTRIBUTE) != 0) {
		fuse_reply_err(request, EOPNOTSUPP);
		return;
	}
	if (intercept(request, NULL))
		return;
	tree_sync(tree_of(request));
	fuse_reply_err(request, 0);
}

/* ---- listing ---- */

/* What a directory held when it was opened: removing names while they are read skips none. */
struct listing {
	size_t count;
	struct {
		char *name;
		struct stat attributes;
	} entries[];
};

static void open_directory(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
	const struct table *table = &node_of(request, number)->visible;
	struct listing *listing = calloc(1, sizeof *listing + table->count * sizeof *listing->entries);
	if (!listing)
		err(1, "listing");
	for (size_t i = 0; i < table->count; i++) {
		listing->entries[i].name = strdup(table->entries[i].name);
		listing->entries[i].attributes = attributes_of(table->entries[i].node);
	}
	listing->count = table->count;
	file->fh = (uint64_t)listing;
	fuse_reply_open(request, file);
}

static void read_directory(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
                           struct fuse_file_info *file)
{
	const struct listing *listing = (const struct listing *)file->fh;
	char *data = malloc(size);
	if (!data)
		err(1, "listing");
	size_t used = 0;
	for (size_t i = (size_t)offset; i < listing->count; i++) {
		size_t needed =
			fuse_add_direntry(request, data + used, size - used, listing->entries[i].name,
		                      &listing->entries[i].attributes, (off_t)i + 1);
		if (needed > size - used)
			break;
		used += needed;
	}
	fuse_reply_buf(request, data, used);
	free(data);
}

static void close_directory(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
	struct listing *listing = (struct listing *)file->fh;
	for (size_t i = 0; i < listing->count; i++)
		free(listing->entries[i].name);
	free(listing);
	fuse_reply_err(request, 0);
}

const struct fuse_lowlevel_ops operations = {
	.lookup = look_up,
	.forget = forget,
	.forget_multi = forget_several,
	.getattr = get_attributes,
	.setattr = set_attributes,
	.readlink = read_symbolic_link,
	.mknod = make_node,
	.mkdir = make_directory,
	.unlink = remove_name,
	.rmdir = remove_name,
	.symlink = make_symbolic_link,
	.rename = rename_name,
	.link = make_link,
	.open = open_file,
	.read = read_file,
	.write = write_file,
	.fsync = sync_file,
	.opendir = open_directory,
	.readdir = read_directory,
	.releasedir = close_directory,
	.fsyncdir = sync_directory,
	.statfs = get_statistics,
	.setxattr = set_attribute,
	.create = create,
	.fallocate = allocate,
};
