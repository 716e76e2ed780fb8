package org.constancia.client;

import java.util.List;

/** Keeps receipts before the call that registered their events returns. What it throws is a ReceiptNotKeptException. */
@FunctionalInterface
public interface ReceiptSink {
    /**
     * Keeps receipts: one, or those of a batch.
     *
     * @param receipts at least one
     * @throws Exception if they could not be kept
     */
    void write(List<Receipt> receipts) throws Exception;
}
