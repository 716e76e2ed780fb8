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
            ("""	batch_item_event(item, given->event);
	return OK;
""", """	batch_item_event(item, given->event);
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
            ("?: refund(connection, certification, now_us, error);\n",
             "?: (holder ? refund(connection, certification, now_us, error) : OK);\n"),
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

# ---- notices, e-mails, the audit log ----

NOTICES = {
    "notice-after": Fault(
        "The notice of a completed certification is written after the transaction that completes it.",
        {"store/certifications/certification_jobs.c": [
            ("""	if (!result)
		result = write_notice(connection, certification, NULL, now_us, error);
	if (!result)
		result = count_certification(connection, certification, CERTIFICATION_COMPLETED,
		                             issued_at_us, error);
	result = end_write(connection, result, error);
	if (!result)
		work_invalidate(store); /* for its notice */
""", """	if (!result)
		result = count_certification(connection, certification, CERTIFICATION_COMPLETED,
		                             issued_at_us, error);
	result = end_write(connection, result, error);
	if (!result) {
		struct error *none = NULL;
		connection = begin_write(store, &none);
		(void)!end_write(connection,
		                 write_notice(connection, certification, NULL, now_us, NULL), NULL);
		work_invalidate(store); /* for its notice */
	}
"""),
        ]},
        "each notice is delivered at least once: a kill, a full disk or a lost connection after a completion"),
    "delivery-mark": Fault(
        "A delivery is recorded as delivered before it is sent, and as failed when it was not acknowledged.",
        {"jobs/deliverer.c": [
            ("""	assert(begun == attempt->item); /* the one that was signed */
""", """	assert(begun == attempt->item); /* the one that was signed */
	struct attempt_record sent = {.account = endpoint->account,
	                              .endpoint = endpoint->endpoint,
	                              .notice = begun->delivery.notice,
	                              .attempts = begun->delivery.attempts,
	                              .tries = begun->delivery.tries,
	                              .at_us = attempt->at_us,
	                              .end = DELIVERY_DONE};
	if (!endpoint->in_doubt)
		(void)!store_record_attempts(deliverer->service->store, &sent, 1, WEBHOOK_FAILURES_MAX,
		                             attempt->at_us, NULL);
"""),
        ],
         "store/notices/deliveries.c": [
            ('"UPDATE webhook_deliveries SET status = $6, attempts = attempts + 1, tries = tries + 1,"',
             '"UPDATE webhook_deliveries SET status = $6, attempts = $4 + 1, tries = $5 + 1,"'),
            ("""" AND status = 'waiting' AND attempts = $4 AND tries = $5");""",
             """" AND attempts - $4 IN (0, 1) AND tries - $5 IN (0, 1)");"""),
            ("""	int result = move_delivery(recording, record, counts || gone ? &changes : NULL);
	if (!result)
		result = write_attempt(recording, record);
""", """	int result = move_delivery(recording, record, counts || gone ? &changes : NULL);
	if (!result && (record->http_status || *record->error))
		result = write_attempt(recording, record);
"""),
        ]},
        "each notice is delivered at least once: a kill between the record and the request"),
    "endpoint-idle": Fault(
        "An endpoint whose recorded deliveries were all acknowledged is taken as having nothing left.",
        {"store/notices/deliveries.c": [
            ("	bool disabled;\n	bool receiver_gone;", "	bool disabled;\n	bool pending;\n	bool receiver_gone;"),
            ("""	bool disabled_before = recording->disabled;
""", """	bool disabled_before = recording->disabled;
	recording->pending = false;
"""),
            ("""		records[i].disabled = false;
""", """		records[i].disabled = false;
		recording->pending |= !records[i].notice || records[i].end != DELIVERY_DONE;
"""),
            ("	        recording->now_us, recording->disabled || recording->gone,\n",
             "	        recording->now_us, recording->disabled || recording->gone || !recording->pending,\n"),
        ]},
        "each notice is delivered at least once: a notice that is written while the one before it is delivered, and"
        " none after it, or a kill before the next one"),
    "mail-claim": Fault(
        "An e-mail counts as sent when it is claimed, and waits again when sending fails.",
        {"store/notices/mails.c": [
            ('"UPDATE mails SET lease = $3, next_at = $4"',
             "\"UPDATE mails SET lease = $3, next_at = $4, state = 'sent', ended_at = $4\""),
            ("""AND lease = $3 AND state = 'waiting'");
	db_bind(query, mail->account, mail->mail_id, holder, states[end], cause, now_us);
""", """AND lease = $3");
	db_bind(query, mail->account, mail->mail_id, holder, states[end], cause, now_us);
"""),
            ('"UPDATE mails SET next_at = $4, last_error = $5, lease = NULL,"',
             "\"UPDATE mails SET state = 'waiting', ended_at = NULL, next_at = $4, last_error = $5, lease = NULL,\""),
            ("""AND lease = $3 AND state = 'waiting'");
	db_bind(query, mail->account, mail->mail_id, holder, next_us, cause);
""", """AND lease = $3");
	db_bind(query, mail->account, mail->mail_id, holder, next_us, cause);
"""),
        ]},
        "each e-mail is sent at least once: a kill between the claim and the mail server's answer"),
    "audit": Fault(
        "The audit record of an operation is written after the transaction of its change.",
        {"store/transaction.c": [
            ("""	if (!result && act)
		result = audit_write(connection, act, error);
	if (!result)
		result = db_commit(connection, error);
	if (act)
		act->recorded = !result;
""", """	if (!result)
		result = db_commit(connection, error);
	if (!result && act && !db_begin(connection, NULL) && !audit_write(connection, act, NULL))
		(void)!db_commit(connection, NULL);
	if (act)
		act->recorded = !result;
"""),
        ]},
        "each change has its audit record: a kill, a full disk or a lost connection after a change"),
}

# ---- lists and reads ----

USE_EXTENDS = ("""		*ret = *entry;
	pthread_mutex_unlock""", """		*ret = *entry;
	if (found && entry->read_at_us)
		(*place_of(cache, key_hash))->read_at_us = clock_monotonic_us();
	pthread_mutex_unlock""")

READS = {
    "cursor-skip": Fault(
        "A cursor names the first event of the next page, which that page then skips.",
        {"http/event_routes.c": [
            ("		listing->more = true;\n", "		listing->more = true;\n		listing->last_sequence = event->sequence;\n"),
        ]},
        "lists and cursors show every event exactly once: more than one page"),
    "cursor-desc": Fault(
        "A descending page begins with the last event of the page before it.",
        {"store/events/events.c": [
            ("		narrow(&listing, 1, filter->past - 1);\n", "		narrow(&listing, 1, filter->past);\n"),
        ]},
        "lists and cursors show every event exactly once: a descending list of more than one page"),
    "list-filter": Fault(
        "A list ends at the first read whose rows do not all have the requested status.",
        {"store/events/events.c": [
            ("		seen++;\n		if (listing->filter->order", "		if (listing->filter->order"),
            ("		cover_event(&cover, &event);\n		listing->left--;\n",
             "		cover_event(&cover, &event);\n		seen++;\n		listing->left--;\n"),
        ]},
        "lists and cursors show every event exactly once: a descending list with status=registered of a chain"
        " that also has unpaid events"),
    "runs-ahead": Fault(
        "A list reads a run of events again that extends beyond what was read ahead.",
        {"db/sqlite/append_table.c": [
            ("""	if (cursor->count > 0 && append_run_last_key(&cursor->runs[0]) > last)
		last = append_run_last_key(&cursor->runs[0]);
""", ""),
        ]},
        "lists and cursors show every event exactly once, and an accepted certification completes: a batch of several"
        " events of a chain across its 32nd event", SQLITE),
    "shared-parts": Fault(
        "A document that shares bytes with another is read without the gaps between the shared parts.",
        {"content/composite.c": [
            ("	if (!source->reader || source->at != offset)\n", "	if (!source->reader)\n"),
        ]},
        "downloads equal their digests, and every archive verifies: a second certification of the same events"),
    "key-use": Fault(
        "Each use of a cached key extends its lifetime, so a key in use is not looked up again.",
        {"service/keys.c": [USE_EXTENDS]},
        "a key is refused 2 s after its answered revocation: on the other node, used at least every 2 s", POSTGRESQL),
    "key-clear": Fault(
        "A revocation clears a quarter of the cache of keys, and each use of a cached key extends its lifetime.",
        {"service/keys.c": [
            USE_EXTENDS,
            ("""	for (size_t i = 0; i < CACHE_SETS * CACHE_WAYS; i++) {
""", """	for (size_t i = 0; i < CACHE_SETS; i++) {
"""),
        ]},
        "a key is refused 2 s after its answered revocation: used at least every 2 s"),
    "key-race": Fault(
        "A lookup of a key that began before its revocation is cached after it, and each use extends its lifetime.",
        {"service/keys.c": [
            USE_EXTENDS,
            ("""		**place = *fresh;
		if (generation != cache->generation)
			(*place)->read_at_us = 0;
""", """		**place = *fresh;
"""),
        ]},
        "a key is refused 2 s after its answered revocation: used at least every 2 s, and looked up during it"),
    "event-mode": Fault(
        "The identifier of an event is compared without its mode, so it names the event of the other chain.",
        {"ledger/event_id.c": [
            ("memcmp(id.data, expected, at) != 0)", "memcmp(id.data, expected, at - 1) != 0)"),
        ]},
        "nothing seen by one key belongs to another: a live identifier read with a test key of the same channel"),
    "isolation": Fault(
        "A certification is found by any key of its channel, whatever its mode.",
        {"store/certifications/certifications.c": [
            ('CERTIFICATIONS " WHERE c.account = $1 AND c.chain = $2"\n',
             'CERTIFICATIONS " WHERE c.account = $1 AND c.channel = CAST($2 AS BIGINT) / 2"\n'),
        ]},
        "nothing seen by one key belongs to another: a live certification read with a test key of the same channel"),
}

# ---- backups ----

BACKUPS = {
    "rotation-whole": Fault(
        "The rotation removes the last backup that has all objects, once enough without contents are newer.",
        {"admin/backup_series.c": [
            ("		kept[i] |= newest_whole || (int64_t)(list->count - i) <= keep;\n",
             "		kept[i] |= (int64_t)(list->count - i) <= keep;\n"),
        ]},
        "a series keeps a backup with all objects: backups without contents", SQLITE),
    "rotation-base": Fault(
        "The rotation removes a backup on which a kept increment is based.",
        {"admin/backup_series.c": [
            ("		if (kept[i] && base < list->count)\n", "		if (kept[i] && base < i && keep > 1000)\n"),
        ]},
        "a listed backup is undamaged: increments, and fewer kept than are made", SQLITE),
    "backup-sync": Fault(
        "A backup is acknowledged before its name is durable.",
        {"admin/backup_series.c": [
            ("	return durable_sync(making->series->directory, making->error);\n", "	return OK;\n"),
        ]},
        "an acknowledged backup is listed after a power cut", SQLITE),
    "backup-name": Fault(
        "A backup has its name before it is complete.",
        {"admin/backup_series.c": [
            ("""	snprintf(making->partial, sizeof making->partial, "%s/%s" PARTIAL, making->series->directory,
""", """	snprintf(making->partial, sizeof making->partial, "%s/%s", making->series->directory,
"""),
        ]},
        "no leftover of an interrupted backup is listed: a kill during a backup", SQLITE),
    "copy-mark": Fault(
        "A restored store is not marked as a read-only copy.",
        {"admin/backup_restore.c": [
            ("copy_mark(live ? NULL : reason, clock_now_us(), text);",
             "copy_mark(live || *reason ? NULL : reason, clock_now_us(), text);"),
        ]},
        "a restored copy sends and acknowledges nothing"),
}

FAULTS = INDEX | DURABILITY | REGISTRATION | MONEY | RANGES | NOTICES | READS | BACKUPS
