package org.constancia.client;

import java.util.List;

/**
 * A page of a list.
 *
 * @param <T> an Event or a Certification
 * @param data what the page has
 * @param nextCursor for the next page; null on the last one
 */
public record Page<T>(List<T> data, String nextCursor) {
    /**
     * Returns whether more pages follow.
     *
     * @return false on the last one
     */
    public boolean hasMore() {
        return nextCursor != null;
    }
}
