package org.constancia.client;

/** Is called while a file arrives. */
@FunctionalInterface
public interface Progress {
    /**
     * Takes how much has arrived.
     *
     * @param bytes so far
     * @param total of the file; -1 where it is not known
     */
    void at(long bytes, long total);
}
