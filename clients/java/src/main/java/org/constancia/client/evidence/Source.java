package org.constancia.client.evidence;

import java.io.IOException;

/** Items in order, read when they are needed. */
interface Source<T> {
    /** Returns the next item, null at the end. */
    T next() throws IOException;
}
