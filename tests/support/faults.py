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

# ---- money ----

MONEY = {
    "lock": Fault(
        "An account is read without a lock before its balance is changed, and entries are numbered when inserted.",
        {"store/money/credit_movements.c": [
            ('"FROM accounts WHERE account = $1 FOR UPDATE");', '"FROM accounts WHERE account = $1");'),
            ('"VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");',
             '"VALUES ($1, CAST($2 AS BIGINT) * 0 + 1 + (SELECT COALESCE(MAX(e.number), 0) "\n'
             '						"FROM credit_entries e WHERE e.account = $1), "\n'
             '						"$3, $4, $5, $6, $7, $8, $9, $10)");'),
        ],
         "store/events/register_server.c": [
            ("	for (const struct ledger_entry *entry = entries; entry; entry = entry->next) {\n",
             "	int64_t number = 0;\n"
             "	for (const struct ledger_entry *entry = entries; entry; entry = entry->next) {\n"
             "		account->last_entry++;\n"),
            ("		db_array_add_integer(&columns[0], ++account->last_entry);\n",
             "		db_array_add_integer(&columns[0], ++number);\n"),
            ("SELECT $1, $2, 'events', unnest($3::bigint[]), \"\n",
             "SELECT $1, $2, 'events', (SELECT COALESCE(MAX(e.number), 0) \"\n"
             "	             \"FROM credit_entries e WHERE e.account = $1) + unnest($3::bigint[]), \"\n"),
        ]},
        "balance = paid − registered: registrations at the same time as fees or purchases of one account, or on two"
        " nodes", POSTGRESQL),
    "settle": Fault(
        "A payment settles the newest unpaid events, not the oldest.",
        {"store/money/credit_movements.c": [
            ("WHERE account = $1 ORDER BY number LIMIT $2)", "WHERE account = $1 ORDER BY number DESC LIMIT $2)"),
        ]},
        "unpaid events become registered in their order: a payment of fewer credits than there are unpaid events"),
    "topup": Fault(
        "The transaction of an automatic top-up does not check again whether one is in progress.",
        {"store/money/topup.c": [
            ("		.under_way = topup->purchase != 0,\n", "		.under_way = false,\n"),
        ]},
        "one automatic purchase per crossing: two nodes that decide at the same time", POSTGRESQL),
    "paid-again": Fault(
        "A late notice of a payment pays a purchase that was refunded since.",
        {"ledger/purchase_rules.c": [
            ("	bool never_paid = from == PURCHASE_CANCELED || from == PURCHASE_REJECTED;\n",
             "	bool never_paid = from == PURCHASE_CANCELED || from == PURCHASE_REJECTED ||\n"
             "	                  from == PURCHASE_REFUNDED || from == PURCHASE_REVERTED;\n"),
        ]},
        "balance = paid − registered: a notice of the provider that arrives twice or late, after the refund"),
    "rearm": Fault(
        "A threshold that is exceeded again stays disarmed in the store.",
        {"ledger/notice.c": [("		threshold->changed = true;\n", "		threshold->changed = !above;\n")]},
        "each crossing of a threshold has its notice: a second crossing after a purchase"),
    "refund": Fault(
        "The fee of a certification that fails because its range is not sealed in time is not refunded.",
        {"store/certifications/certification_jobs.c": [
            ("	int result = refund(connection, certification, now_us, error);\n",
             "	int result = holder ? refund(connection, certification, now_us, error) : OK;\n"),
        ]},
        "balance = paid − registered − fees of certifications that did not fail: an authority outage longer than"
        " certification.give_up_after"),
    "idempotency": Fault(
        "The acceptance of a certification takes its idempotency key from one that is still in processing.",
        {"store/certifications/accept.c": [
            ('AND idempotency_key = $3 AND requested_at <= $4"',
             "AND idempotency_key = $3 AND (requested_at <= $4 OR status = 'processing')\""),
        ]},
        "one certification and one fee per idempotency key: the same request twice at the same time"),
}

# ---- certified ranges and seals ----

RANGES = {
    "range-floor": Fault(
        "A certification by time does not raise the earliest time of the chain's next event.",
        {"store/certifications/close.c": [
            ("	return write_last(connection, account, chain, last_us, error);\n",
             "	return write_last(connection, account, chain, before_us, error);\n"),
        ]},
        "every receipt in a certified range is certified: a clock that is set back after the request, or nodes whose"
        " clocks differ"),
    "range-early": Fault(
        "A range is resolved before it is closed, and not again after it.",
        {"issue/certify_range.c": [
            ("""	if (!result)
		result = resolve_times(service, certification, cut_us, error);
	/* Compared""", """	/* Compared"""),
        ]},
        "every receipt in a certified range is certified: registrations during a request for a range that ends now"),
    "range-bound": Fault(
        "The bounds of a range by time are exclusive and inclusive, not inclusive and exclusive.",
        {"store/events/events.c": [
            ("		bool before = db_step(query) && db_integer(query, 0) < time_us;\n",
             "		bool before = db_step(query) && db_integer(query, 0) <= time_us;\n"),
        ]},
        "an accepted certification completes, and lists between two times show every event: a bound that is the time"
        " of an event"),
    "close-lock": Fault(
        "A range is closed without the lock of the account, so the time of the chain may be overwritten by an earlier"
        " one.",
        {"store/certifications/close.c": [
            ("""	int result = lock_account(connection, account, error);
	if (!result)
		result = read_last(connection, account, chain, &last_us, error);
""", """	int result = read_last(connection, account, chain, &last_us, error);
"""),
        ]},
        "no event's time before its predecessor's: two nodes whose clocks differ, registrations during the request",
        POSTGRESQL),
    "seal-early": Fault(
        "A certification is issued before the last event of its range is sealed.",
        {"store/certifications/certification_jobs.c": [
            ('"s") " >= c.last_sequence)"', '"s") " >= c.last_sequence - 1)"'),
        ]},
        "an accepted certification completes: a range of which all but the last event is sealed"),
    "unsealed": Fault(
        "A chain that received events while it was sealed is taken as sealed completely.",
        {"store/events/staged_round.c": [
            ("""	query = db_query(connection, "DELETE FROM unsealed_chains WHERE account = $1 AND chain = $2"
	                             " AND EXISTS (SELECT 1 FROM chains c WHERE c.account = $1"
	                             " AND c.chain = $2 AND last_sequence = sealed_sequence)");
""", """	query = db_query(connection, "DELETE FROM unsealed_chains WHERE account = $1 AND chain = $2");
"""),
        ]},
        "every live event is sealed soon after registration ends: registrations during a round, and no certification"
        " of the chain after it"),
    "round-changes": Fault(
        "A round is written although its staged blocks were replaced while it was timestamped.",
        {"store/events/rounds.c": [("		?: check_staged_changes(connection, round, error)\n", "")]},
        "every archive verifies: a node that freezes during its timestamp while the other unstages and stages",
        POSTGRESQL),
    "proof": Fault(
        "The proof of an event in a group of 127 events at the end of a segment lacks the seal document.",
        {"evidence/stored_segment.c": [
            ("	if (count < SEGMENT_NODE_LEAVES)\n		leaves[count++]",
             "	if (count < SEGMENT_NODE_LEAVES - 1)\n		leaves[count++]"),
        ]},
        "an answer of 5xx is resolved by a retry: a segment of 127 events, or of 127 more than a multiple of 128"),
}

FAULTS = INDEX | DURABILITY | REGISTRATION | MONEY | RANGES
