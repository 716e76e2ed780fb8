"""Faults that plant.py plants: mistakes that a competent programmer makes, and that today's code prevents.

Each leaves ordinary requests correct. It shows under concurrency, at a boundary, after a kill, or when records are
compared.
"""

import dataclasses

SQLITE, POSTGRESQL = ("sqlite",), ("postgresql",)


@dataclasses.dataclass(frozen=True)
class Fault:
    sentence: str           # what the planted program does
    places: dict            # {source below src: [(text, its replacement), …]}
    seen: str               # what shows it
    stores: tuple = SQLITE + POSTGRESQL
    usual: bool = False     # built with everything else, because `make test` searches for it


# ---- the index of client references of the embedded store ----

INDEX = {
    "flush": Fault(
        "One entry is dropped when a run of the index is begun.",
        {"store/events/client_refs.c": [
            ("""	refs->moving = sorted_of(refs, refs->slots, count);
""", """	refs->moving = sorted_of(refs, refs->slots, count - 1);
"""),
            ("ref_runs_begin_flush(refs->runs, connection, refs->gathered + refs->added.count,",
             "ref_runs_begin_flush(refs->runs, connection, refs->gathered + refs->added.count - 1,"),
        ]},
        "one event per client_ref, with a small refs_gathered", SQLITE, usual=True),
    "merge": Fault(
        "A merge loses one entry in 61.",
        {"store/events/client_ref_runs.c": [
            ("			if (bucket >= first && bucket < end)\n",
             "			if (bucket >= first && bucket < end && entry.place % 61)\n"),
        ]},
        "one event per client_ref, with small sizes of the index", SQLITE, usual=True),
    "rollback": Fault(
        "The progress of a merge in a transaction counts although it was rolled back.",
        {"store/events/client_ref_runs.c": [
            ("		run->gone = false;\n		run->filled_next = run->filled;\n",
             "		run->gone = false;\n"),
        ]},
        "one event per client_ref, with small sizes of the index and statements that fail", SQLITE, usual=True),
    "lookup": Fault(
        "A lookup reads one side of what is being moved.",
        {"store/events/client_ref_runs.c": [
            ("			if (!others)\n				continue;\n", "			continue;\n"),
        ]},
        "a list by client_ref, or one event per client_ref, with small sizes of the index", SQLITE, usual=True),
}

# ---- durability and replication ----

DURABILITY = {
    "wal-sync": Fault(
        "A commit writes the write-ahead log and does not sync it.",
        {"db/sqlite/wal_file.c": [
            ("	return result == SQLITE_OK ? own->pMethods->xSync(own, flags) : result;\n",
             "	(void)own;\n	return result;\n"),
        ]},
        "a receipt is found after a power cut", SQLITE),
    "content-sync": Fault(
        "The directory of a new content object is not synced after the rename.",
        {"content/file/file_store.c": [
            ("""	writer->name[0] = '\\0';
	if (!durable_sync_open(directory))
		return fail(error, "syncing a directory", errno);
""", """	writer->name[0] = '\\0';
"""),
        ]},
        "downloads equal their digests, after a power cut of the file system of the content"),
    "replay": Fault(
        "A batch that only replays writes nothing, so its commit does not wait for a standby.",
        {"db/postgres/postgres.c": [
            ("""	if (!base->failure && connection->use == PG_REGISTRAR)
		pg_send_text(connection, NULL, pg_write_something);
""", ""),
        ]},
        "a receipt is found after a fail-over: the first request waited for a standby, its replay was answered",
        POSTGRESQL),
    "confirm": Fault(
        "A repeated request for a certification is answered before a standby has the first.",
        {"store/certifications/idempotency.c": [
            ("""	result = store_confirm_account(store, account, error);
	if (!result)
		*ret = found;
""", """	*ret = found;
"""),
        ]},
        "an accepted certification exists after a fail-over", POSTGRESQL),
    "standby": Fault(
        "Registrations do not check how many standbys their commit waits for.",
        {"db/postgres/postgres.c": [
            ("return connection->use == PG_WRITER || connection->use == PG_REGISTRAR ||",
             "return connection->use == PG_WRITER ||"),
        ]},
        "a receipt is found after two fail-overs: the promoted server awaits no standby", POSTGRESQL),
    "head-rollback": Fault(
        "The cache of chain heads takes the heads of a batch before its commit, and keeps them when the commit fails.",
        {"store/events/register_embedded.c": [
            ("""static int finish(struct batch *batch, struct error *error)
{
	int result = client_refs_write(batch->memory->client_refs, batch->connection, error);
""", """static void keep_heads(struct batch *batch);

static int finish(struct batch *batch, struct error *error)
{
	int result = client_refs_write(batch->memory->client_refs, batch->connection, error);
	keep_heads(batch);
"""),
            ("""		client_refs_committed(batch->memory->client_refs);
		keep_heads(batch);
""", """		client_refs_committed(batch->memory->client_refs);
"""),
            ("""		client_refs_rolled_back(batch->memory->client_refs);
		head_cache_clear(batch->memory->head_cache);
""", """		client_refs_rolled_back(batch->memory->client_refs);
"""),
        ]},
        "gapless sequences, when a full disk or an I/O error fails a commit", SQLITE),
}

# ---- registration: references, times, limits ----

REGISTRATION = {
    "conflict-batch": Fault(
        "A request with the client_ref of another request of its batch is a replay, whatever it declares.",
        {"ledger/ledger.c": [
            ("""		bool same = first ? same_declaration(request->declaration, first->hash_algorithm,
		                                     first->hash, first->occurred_at_us)
""", """		bool same = first ? true
"""),
        ]},
        "a conflict is answered 409: two declarations with one client_ref at the same time"),
    "ref-batch": Fault(
        "A batch does not notice that two of its requests have the same client_ref.",
        {"ledger/ledger.c": [("	*slot = request;\n", "")]},
        "one event per client_ref: two requests with one client_ref at the same time"),
    "receipt": Fault(
        "A receipt has the time of its batch, not the later time of the chain.",
        {"store/events/register.c": [
            ("""		batch_item_event(item, given->event);
		return OK;
""", """		batch_item_event(item, given->event);
		given->event->received_at_us = batch->clock.now_us;
		return OK;
"""),
        ]},
        "a receipt equals the event as read later: after the clock was set back, a range was closed, or another node's"
        " clock is ahead"),
    "floor-lost": Fault(
        "The head of a chain keeps the time of the last batch, even if its events have a later one.",
        {"store/events/register_embedded.c": [
            ("	db_bind(query, account, chain->chain, chain->last_sequence, chain->last_received_at_us,\n",
             "	db_bind(query, account, chain->chain, chain->last_sequence, batch->clock.now_us,\n"),
        ],
         "store/events/register_server.c": [
            ("		db_array_add_integer(&columns->last_received_at, chain->last_received_at_us);\n",
             "		db_array_add_integer(&columns->last_received_at, batch->clock.now_us);\n"),
        ]},
        "no event's time before its predecessor's: after two steps of the clock, or with nodes whose clocks differ"),
    "unpaid-limit": Fault(
        "One event more than the unpaid limit is registered.",
        {"ledger/ledger.c": [
            ("account->unpaid_events >= account->unpaid_limit)", "account->unpaid_events > account->unpaid_limit)"),
        ],
         "ledger/invariants.c": [
            ("	assert(!unpaid || account->unpaid_events <= account->unpaid_limit);\n", ""),
        ]},
        "the number of unpaid events is at most the limit"),
    "limit-batch": Fault(
        "A consumption limit is compared with the events before the batch.",
        {"ledger/ledger.c": [
            ("		limit->used++;\n", "		const int64_t used = limit->used + 1;\n"),
            ("		if (limit->used < limit->max_events || strcmp(limit->notified_period, key) == 0)\n",
             "		if (used < limit->max_events || strcmp(limit->notified_period, key) == 0)\n"),
        ]},
        "at most max_events of a blocking limit in its period: several requests at the same time at the limit"),
    "config-cache": Fault(
        "The configuration of a cached chain head is not read again.",
        {"store/events/head_cache.c": [
            ("""	if (result || written.here != heads->written.here ||
	    written.elsewhere != heads->written.elsewhere)
""", """	if (result || written.elsewhere != heads->written.elsewhere)
"""),
        ],
         "store/events/register_embedded.c": [
            ("""		if (!head_cache_find(batch->memory->head_cache, account, batch->arena, &chains[i]))
			result = read_head(batch, account, &chains[i], error);
	return result;
""", """	{
		struct loaded_chain kept = chains[i];
		bool found = head_cache_find(batch->memory->head_cache, account, batch->arena, &kept);
		result = read_head(batch, account, &chains[i], error);
		if (!result && found) {
			chains[i].ledger.config_version = kept.ledger.config_version;
			chains[i].ledger.config_hash = kept.ledger.config_hash;
		}
	}
	return result;
"""),
        ]},
        "an event after an answered change of the configuration has the new version", SQLITE),
    "content-discard": Fault(
        "The content of a registration with an unknown outcome is deleted.",
        {"http/registration_route.c": [
            ("	case ERR_REFUSED: return true;\n", "	case ERR_UNKNOWN_OUTCOME:\n	case ERR_REFUSED: return true;\n"),
        ]},
        "downloads equal their digests: content larger than is stored inline, and a commit that no standby confirms"
        " or whose sync fails"),
}

FAULTS = INDEX | DURABILITY | REGISTRATION
