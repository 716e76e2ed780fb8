#include "http/connection_table.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/error.h"
#include "http/shares.h"

#define BUCKETS 4096        /* a power of two */
#define HEADS_PENDING_MAX 8 /* heads that a client normally sends at a time */
#define HEAD_GRACE_US US_PER_SECOND
#define SLOW_FEW 8   /* slow requests of an address that are normally not evicted */
#define SLOW_MANY 16 /* above this number they are evicted before idle connections */
#define SLOW_LONG_US (10 * US_PER_SECOND) /* age from which all but one of them are evicted */
#define HELD_SPARE 1                      /* for the new connection */

struct entry_list {
	struct connection_entry *first, *last;
	size_t count;
};

/* An address with connections. */
struct connection_address {
	uint64_t address;
	bool is_proxy;
	size_t held;
	struct connection_address *next; /* next in the bucket */
	struct entry_list entries[CONNECTION_KINDS];
	/* List of the addresses with the same number of the kind. */
	struct connection_address *equal_previous[CONNECTION_KINDS], *equal_next[CONNECTION_KINDS];
};

struct holder_list {
	struct connection_address *first, *last;
};

/* The addresses by their number of connections of a kind. Among equal numbers, the address that
 * reached the number first comes first. */
struct ranking {
	struct holder_list *by_count;
	size_t most;
};

/* One group for clients, one for trusted proxies. */
struct group {
	struct ranking rankings[CONNECTION_KINDS];
	struct connection_entry *oldest, *youngest; /* unfinished heads by age */
};

struct connection_table {
	pthread_mutex_t lock;
	size_t held, held_max;
	size_t by_kind[CONNECTION_KINDS + 1];
	_Atomic int64_t *cut;
	struct group groups[2];
	struct shares *forwarded;
	struct connection_address *buckets[BUCKETS];
};

/* ---- creation ---- */

struct connection_table *connection_table_create(size_t connections_max, _Atomic int64_t *cut)
{
	struct connection_table *table = calloc(1, sizeof *table);
	if (!table)
		return NULL;
	pthread_mutex_init(&table->lock, NULL);
	table->held_max = connections_max;
	table->cut = cut;
	table->forwarded = shares_create();
	bool whole = table->forwarded;
	for (int group = 0; group < 2; group++) {
		for (int kind = 0; kind < (int)CONNECTION_KINDS; kind++) {
			struct ranking *ranking = &table->groups[group].rankings[kind];
			ranking->by_count =
				calloc(connections_max + HELD_SPARE + 1, sizeof(struct holder_list));
			whole = whole && ranking->by_count;
		}
	}
	if (whole)
		return table;
	connection_table_free(table);
	return NULL;
}

void connection_table_free(struct connection_table *table)
{
	if (!table)
		return;
	assert(table->held == 0);
	for (int group = 0; group < 2; group++)
		for (int kind = 0; kind < (int)CONNECTION_KINDS; kind++)
			free(table->groups[group].rankings[kind].by_count);
	shares_free(table->forwarded);
	pthread_mutex_destroy(&table->lock);
	free(table);
}

/* ---- the addresses with the most connections ---- */

static void rank(struct ranking *ranking, struct connection_address *holder, int kind)
{
	size_t count = holder->entries[kind].count;
	if (count == 0)
		return;
	struct holder_list *equals = &ranking->by_count[count];
	holder->equal_next[kind] = NULL;
	holder->equal_previous[kind] = equals->last;
	*(equals->last ? &equals->last->equal_next[kind] : &equals->first) = holder;
	equals->last = holder;
	if (count > ranking->most)
		ranking->most = count;
}

static void unrank(struct ranking *ranking, struct connection_address *holder, int kind)
{
	size_t count = holder->entries[kind].count;
	if (count == 0)
		return;
	struct holder_list *equals = &ranking->by_count[count];
	struct connection_address *previous = holder->equal_previous[kind];
	struct connection_address *next = holder->equal_next[kind];
	*(previous ? &previous->equal_next[kind] : &equals->first) = next;
	*(next ? &next->equal_previous[kind] : &equals->last) = previous;
}

/* Updates the highest count. Counts change by one, so no search below it is required. */
static void settle(struct ranking *ranking)
{
	while (ranking->most > 0 && !ranking->by_count[ranking->most].first)
		ranking->most--;
}

static struct group *group_of(struct connection_table *table,
                              const struct connection_address *holder)
{
	return &table->groups[holder->is_proxy];
}

static void join_age(struct group *group, struct connection_entry *entry)
{
	entry->younger = NULL;
	entry->older = group->youngest;
	*(entry->older ? &entry->older->younger : &group->oldest) = entry;
	group->youngest = entry;
}

static void leave_age(struct group *group, struct connection_entry *entry)
{
	*(entry->older ? &entry->older->younger : &group->oldest) = entry->younger;
	*(entry->younger ? &entry->younger->older : &group->youngest) = entry->older;
}

static void join(struct connection_table *table, struct connection_entry *entry)
{
	enum connection_kind kind = entry->kind;
	table->by_kind[kind]++;
	if (kind == CONNECTION_BUSY)
		return;
	struct group *group = group_of(table, entry->holder);
	struct entry_list *list = &entry->holder->entries[kind];
	unrank(&group->rankings[kind], entry->holder, (int)kind);
	entry->next = NULL;
	entry->previous = list->last;
	*(list->last ? &list->last->next : &list->first) = entry;
	list->last = entry;
	list->count++;
	rank(&group->rankings[kind], entry->holder, (int)kind);
	if (kind == CONNECTION_UNFINISHED)
		join_age(group, entry);
}

static void leave(struct connection_table *table, struct connection_entry *entry)
{
	enum connection_kind kind = entry->kind;
	assert(entry->holder && table->by_kind[kind] > 0);
	table->by_kind[kind]--;
	if (kind == CONNECTION_BUSY)
		return;
	struct group *group = group_of(table, entry->holder);
	struct entry_list *list = &entry->holder->entries[kind];
	unrank(&group->rankings[kind], entry->holder, (int)kind);
	*(entry->previous ? &entry->previous->next : &list->first) = entry->next;
	*(entry->next ? &entry->next->previous : &list->last) = entry->previous;
	assert(list->count > 0);
	list->count--;
	rank(&group->rankings[kind], entry->holder, (int)kind);
	settle(&group->rankings[kind]);
	if (kind == CONNECTION_UNFINISHED)
		leave_age(group, entry);
}

/* ---- addresses ---- */

static struct connection_address **find(struct connection_table *table, uint64_t address,
                                        bool is_proxy)
{
	struct connection_address **at = &table->buckets[address & (BUCKETS - 1)];
	while (*at && ((*at)->address != address || (*at)->is_proxy != is_proxy))
		at = &(*at)->next;
	return at;
}

/* Removes the entry, and its address if it has no other entry. */
static void forget(struct connection_table *table, struct connection_entry *entry)
{
	struct connection_address *holder = entry->holder;
	leave(table, entry);
	entry->holder = NULL;
	assert(table->held > 0 && holder->held > 0);
	table->held--;
	if (--holder->held > 0)
		return;
	struct connection_address **at = find(table, holder->address, holder->is_proxy);
	*at = holder->next;
	free(holder);
}

/* ---- eviction ---- */

static void shut(const struct connection_entry *entry, const char *text)
{
	if (entry->descriptor < 0)
		return;
	if (*text)
		(void)!send(entry->descriptor, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	shutdown(entry->descriptor, SHUT_RDWR);
}

/* Cuts the connection. Its descriptor cannot be closed meanwhile, because connection_remove takes
 * the lock first. */
static void cut(struct connection_table *table, struct connection_entry *entry, const char *text)
{
	atomic_store_explicit(&entry->is_cut, true, memory_order_relaxed);
	forget(table, entry);
	shut(entry, text);
	if (table->cut)
		atomic_fetch_add_explicit(table->cut, 1, memory_order_relaxed);
}

/* Returns the oldest connection of the kind of the address with most of them, if it has more than
 * `few`. */
static struct connection_entry *oldest_of_largest(const struct group *group,
                                                  enum connection_kind kind, size_t few)
{
	const struct ranking *ranking = &group->rankings[kind];
	return ranking->most > few ? ranking->by_count[ranking->most].first->entries[kind].first : NULL;
}

/* Returns a request that is slow for long. The holder of an IPv6 prefix has many addresses, and a
 * few slow requests from each could fill the table. */
static struct connection_entry *find_long_slow(const struct group *group, int64_t now_us)
{
	struct connection_entry *first = oldest_of_largest(group, CONNECTION_SLOW, 1);
	return first && first->since_us + SLOW_LONG_US <= now_us ? first : NULL;
}

static struct connection_entry *choose_victim_in(const struct group *group, int64_t now_us)
{
	struct connection_entry *chosen =
		oldest_of_largest(group, CONNECTION_UNFINISHED, HEADS_PENDING_MAX);
	if (!chosen && group->oldest && group->oldest->since_us + HEAD_GRACE_US <= now_us)
		chosen = group->oldest;
	if (!chosen && group->rankings[CONNECTION_SLOW].most > group->rankings[CONNECTION_IDLE].most)
		chosen = oldest_of_largest(group, CONNECTION_SLOW, SLOW_MANY);
	if (!chosen)
		chosen = oldest_of_largest(group, CONNECTION_IDLE, 0);
	if (!chosen)
		chosen = oldest_of_largest(group, CONNECTION_UNFINISHED, 0);
	if (!chosen)
		chosen = oldest_of_largest(group, CONNECTION_SLOW, SLOW_FEW);
	return chosen ? chosen : find_long_slow(group, now_us);
}

static struct connection_entry *choose_victim(const struct connection_table *table, int64_t now_us)
{
	struct connection_entry *chosen = choose_victim_in(&table->groups[false], now_us);
	return chosen ? chosen : choose_victim_in(&table->groups[true], now_us);
}

static struct connection_entry *choose_own_victim(const struct connection_address *holder)
{
	struct connection_entry *chosen = holder->entries[CONNECTION_UNFINISHED].first;
	if (!chosen)
		chosen = holder->entries[CONNECTION_IDLE].first;
	return chosen || holder->entries[CONNECTION_SLOW].count <= SLOW_FEW
	           ? chosen
	           : holder->entries[CONNECTION_SLOW].first;
}

/* Evicts a connection if the table is full. `newcomer` is NULL for an address without
 * connections. */
static bool evict_if_full(struct connection_table *table, const struct connection_address *newcomer,
                          int64_t now_us)
{
	if (table->held < table->held_max)
		return true;
	struct connection_entry *chosen = choose_victim(table, now_us);
	if (chosen && newcomer && newcomer != chosen->holder && !newcomer->is_proxy &&
	    newcomer->held >= chosen->holder->held)
		chosen = choose_own_victim(newcomer);
	if (chosen)
		cut(table, chosen, "");
	return chosen;
}

/* ---- public functions ---- */

static int enter(struct connection_table *table, struct connection_entry *entry,
                 const struct connection_origin *origin, int64_t now_us)
{
	struct connection_address **at = find(table, origin->address, origin->is_proxy);
	if (*at && !origin->is_proxy && (int64_t)(*at)->held >= origin->limit)
		return ERR_RATE_LIMITED;
	if (!evict_if_full(table, *at, now_us))
		return ERR_BUSY;
	at = find(table, origin->address, origin->is_proxy);
	if (!*at) {
		*at = calloc(1, sizeof **at);
		if (!*at)
			return ERR_NO_MEMORY;
		(*at)->address = origin->address;
		(*at)->is_proxy = origin->is_proxy;
	}
	assert(!entry->holder && table->held < table->held_max);
	entry->holder = *at;
	entry->holder->held++;
	table->held++;
	entry->kind = CONNECTION_UNFINISHED;
	entry->since_us = now_us;
	join(table, entry);
	return 0;
}

int connection_add(struct connection_table *table, struct connection_entry *entry,
                   const struct connection_origin *origin, int descriptor, int64_t now_us)
{
	entry->descriptor = descriptor;
	pthread_mutex_lock(&table->lock);
	int result = enter(table, entry, origin, now_us);
	pthread_mutex_unlock(&table->lock);
	return result;
}

bool connection_set_descriptor(struct connection_table *table, struct connection_entry *entry,
                               int descriptor)
{
	pthread_mutex_lock(&table->lock);
	entry->descriptor = descriptor;
	bool is_cut = entry->is_cut;
	if (is_cut)
		shut(entry, "");
	pthread_mutex_unlock(&table->lock);
	return !is_cut;
}

bool connection_set_kind(struct connection_table *table, struct connection_entry *entry,
                         enum connection_kind kind, int64_t now_us)
{
	pthread_mutex_lock(&table->lock);
	bool counts = entry->holder;
	if (counts) {
		leave(table, entry);
		entry->kind = kind;
		entry->since_us = now_us;
		join(table, entry);
	}
	bool is_cut = entry->is_cut;
	pthread_mutex_unlock(&table->lock);
	return !is_cut;
}

bool connection_cut(struct connection_table *table, struct connection_entry *entry,
                    const char *text)
{
	pthread_mutex_lock(&table->lock);
	bool counts = entry->holder;
	if (counts)
		cut(table, entry, text);
	pthread_mutex_unlock(&table->lock);
	return counts;
}

bool connection_evict(struct connection_table *table, int64_t now_us)
{
	pthread_mutex_lock(&table->lock);
	struct connection_entry *chosen = choose_victim(table, now_us);
	if (chosen)
		cut(table, chosen, "");
	pthread_mutex_unlock(&table->lock);
	return chosen;
}

void connection_remove(struct connection_table *table, struct connection_entry *entry)
{
	pthread_mutex_lock(&table->lock);
	if (entry->holder)
		forget(table, entry);
	entry->descriptor = -1;
	pthread_mutex_unlock(&table->lock);
}

void connection_count(struct connection_table *table, size_t ret_counts[CONNECTION_KINDS + 1])
{
	pthread_mutex_lock(&table->lock);
	memcpy(ret_counts, table->by_kind, sizeof table->by_kind);
	pthread_mutex_unlock(&table->lock);
}

int connection_forward(struct connection_table *table, uint64_t address, int64_t limit)
{
	pthread_mutex_lock(&table->lock);
	int result = share_take(table->forwarded, address, 1, limit);
	pthread_mutex_unlock(&table->lock);
	return result;
}

void connection_forward_end(struct connection_table *table, uint64_t address)
{
	pthread_mutex_lock(&table->lock);
	share_release(table->forwarded, address, 1);
	pthread_mutex_unlock(&table->lock);
}
