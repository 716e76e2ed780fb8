package org.constancia.client;

import java.util.List;

/**
 * A page of a list.
 *
 * @param <T> an Event, a Certification or a Notice
 * @param data what the page has
 * @param hasMore whether another page can be fetched now
 * @param nextCursor for the next page; null on the last one
 */
public record Page<T>(List<T> data, boolean hasMore, String nextCursor) { }
