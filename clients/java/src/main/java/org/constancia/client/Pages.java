package org.constancia.client;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Function;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * A list that is fetched page by page while it is used. Each iteration begins from the first page.
 *
 * @param <T> an Event or a Certification
 */
public final class Pages<T> implements Iterable<T> {
    private final Function<String, Page<T>> fetch;

    /** fetch: returns the page of a cursor, null for the first one. */
    Pages(Function<String, Page<T>> fetch) {
        this.fetch = fetch;
    }

    /**
     * Returns the same list as a stream.
     *
     * @return a sequential stream
     */
    public Stream<T> stream() {
        return StreamSupport.stream(spliterator(), false);
    }

    @Override
    public Iterator<T> iterator() {
        return new Iterator<>() {
            private Page<T> page = fetch.apply(null);
            private Iterator<T> inside = page.data().iterator();

            @Override
            public boolean hasNext() {
                while (!inside.hasNext() && page.nextCursor() != null) {
                    page = fetch.apply(page.nextCursor());
                    inside = page.data().iterator();
                }
                return inside.hasNext();
            }

            @Override
            public T next() {
                if (!hasNext())
                    throw new NoSuchElementException();
                return inside.next();
            }
        };
    }
}
